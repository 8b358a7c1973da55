CREATE VIEW refused AS SELECT *, 'no debts' AS _reason FROM customer WHERE c_acctbal < 0;
CREATE VIEW unmatched AS
SELECT orders.* FROM orders JOIN customer ON o_custkey = c_custkey WHERE c_acctbal < 0 AND year(o_orderdate) = 1997;
CREATE VIEW sales AS
SELECT o_orderkey, o_orderdate, o_totalprice,
  CASE WHEN o_totalprice < 50000 THEN 'small' WHEN o_totalprice < 200000 THEN 'medium' ELSE 'large' END AS size,
  c_name, c_mktsegment AS segment, c_nationkey AS nation
FROM orders JOIN customer ON o_custkey = c_custkey WHERE c_acctbal >= 0 AND year(o_orderdate) = 1997;
CREATE VIEW segments AS SELECT segment, size, count(*) AS orders, sum(o_totalprice) AS total FROM sales GROUP BY ALL;
CREATE VIEW best AS SELECT c_name, nation, count(*) AS orders, sum(o_totalprice) AS total
FROM sales GROUP BY ALL ORDER BY total DESC LIMIT 10;
