CREATE VIEW extracted AS
SELECT l_orderkey, l_linenumber, year(o_orderdate) AS order_year, quarter(o_orderdate) AS order_quarter,
  CASE o_orderstatus WHEN 'O' THEN 'open' WHEN 'F' THEN 'filled' ELSE 'partial' END AS o_orderstatus,
  CAST(left(o_orderpriority, 1) AS INTEGER) AS priority, o_clerk[7:] AS clerk,
  CAST(floor(o_totalprice / 1000) AS INTEGER) AS thousands, trim(c_name) AS c_name,
  CASE WHEN c_acctbal < 0 THEN 'owes' ELSE 'even' END AS standing,
  upper(c_mktsegment[1]) || lower(c_mktsegment[2:]) AS c_mktsegment,
  array_to_string(list_transform(string_split(n_name, ' '), lambda word: upper(word[1]) || lower(word[2:])), ' ') AS n_name,
  split_part(p_type, ' ', 2) AS finish, split_part(p_type, ' ', 3) AS material, p_brand[7:] AS brand, s_name,
  s_comment LIKE '%Customer%Complaints%' AS complaints, l_quantity, l_extendedprice * (1 - l_discount) AS price,
  CAST(l_extendedprice * (1 - l_discount) * (1 + l_tax) AS DECIMAL(18,4)) AS charge, charge - price AS margin,
  l_receiptdate - l_shipdate AS days,
  CASE l_shipmode WHEN 'REG AIR' THEN 'AIR' WHEN 'FOB' THEN 'SHIP' ELSE l_shipmode END AS l_shipmode
FROM lineitem JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey
  JOIN part ON l_partkey = p_partkey JOIN supplier ON l_suppkey = s_suppkey JOIN nation ON c_nationkey = n_nationkey
WHERE NOT (l_shipinstruct = 'NONE' AND l_returnflag = 'R');
