CREATE VIEW dimension_1998 AS
SELECT row_number() OVER (ORDER BY c_custkey) AS surrogate_key, c_custkey, c_name, c_address, c_nationkey, c_phone,
  c_acctbal, DATE '1998-01-01' AS valid_from, CAST(NULL AS DATE) AS valid_to, true AS is_current, 1 AS version
FROM customer WHERE c_custkey % 100 <> 0;
-- Balances and phone numbers of 1999 stand in all versions of those who are still there.
CREATE VIEW _next AS
SELECT c_custkey AS key, CASE WHEN c_custkey % 4 = 1 THEN c_acctbal + 100 ELSE c_acctbal END AS balance,
  CASE WHEN c_custkey % 7 = 2 THEN replace(c_phone, '-', ' ') ELSE c_phone END AS phone
FROM customer WHERE c_custkey % 100 <> 50;
CREATE VIEW _opened AS
SELECT c_custkey, c_name, CASE WHEN c_custkey % 10 = 3 THEN 'c/o ' || c_address ELSE c_address END AS c_address, c_nationkey,
  CASE WHEN c_custkey % 100 = 0 THEN 1 ELSE 2 END AS version
FROM customer WHERE c_custkey % 10 = 3 OR c_custkey % 100 = 0;
CREATE VIEW dimension_1999 AS
SELECT surrogate_key, c_custkey, c_name, c_address, c_nationkey, coalesce(phone, c_phone) AS c_phone,
  coalesce(balance, c_acctbal) AS c_acctbal, valid_from,
  CASE WHEN c_custkey % 10 = 3 OR c_custkey % 100 = 50 THEN DATE '1999-01-01' END AS valid_to,
  NOT (c_custkey % 10 = 3 OR c_custkey % 100 = 50) AS is_current, version
FROM dimension_1998 LEFT JOIN _next ON key = c_custkey
UNION ALL
SELECT (SELECT max(surrogate_key) FROM dimension_1998) + row_number() OVER (ORDER BY c_custkey), c_custkey, c_name, c_address,
  c_nationkey, phone, balance, DATE '1999-01-01', NULL, true, version
FROM _opened JOIN _next ON key = c_custkey;
CREATE VIEW versions AS SELECT version, is_current, count(*) AS customers, sum(c_acctbal) AS balance
FROM dimension_1999 GROUP BY ALL ORDER BY version, is_current;
