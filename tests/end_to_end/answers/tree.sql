CREATE VIEW sales AS
SELECT c_nationkey, upper(c_mktsegment[1]) || lower(c_mktsegment[2:]) AS c_mktsegment, year(o_orderdate) AS order_year,
  sum(l_extendedprice * (1 - l_discount)) AS price, sum(l_quantity) AS quantity, count(*) AS lines
FROM lineitem JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey
WHERE l_returnflag <> 'R' GROUP BY ALL;
