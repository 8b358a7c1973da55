CREATE VIEW partners AS
SELECT *, CASE WHEN balance < 0 THEN 'owes' WHEN balance < 5000 THEN 'even' ELSE 'rich' END AS standing FROM (
  SELECT 'customer' AS kind, c_custkey AS number, trim(regexp_replace(c_name, '\s+', ' ', 'g')) AS name,
    trim(regexp_replace(c_address, '\s+', ' ', 'g')) AS address, c_nationkey AS nation,
    '+' || replace(c_phone, '-', ' ') AS phone, c_acctbal AS balance FROM customer
  UNION ALL
  SELECT 'supplier', s_suppkey, trim(regexp_replace(s_name, '\s+', ' ', 'g')),
    trim(regexp_replace(s_address, '\s+', ' ', 'g')), s_nationkey, '+' || replace(s_phone, '-', ' '), s_acctbal
  FROM supplier);
