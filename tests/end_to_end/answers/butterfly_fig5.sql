CREATE VIEW v AS
SELECT lineitem.*, p.*
FROM lineitem JOIN (SELECT ps_partkey, sum(ps_availqty) AS available, min(ps_supplycost) AS cheapest
  FROM partsupp GROUP BY ps_partkey) AS p ON l_partkey = ps_partkey
WHERE l_quantity <= 5;
CREATE VIEW z AS SELECT l_partkey, sum(l_extendedprice) AS price,
  (SELECT sum(ps_availqty) FROM partsupp WHERE ps_partkey = l_partkey) AS available, count(*) AS lines FROM v GROUP BY l_partkey;
CREATE VIEW w AS SELECT l_suppkey, sum(l_extendedprice) AS price, sum(l_quantity * cheapest) AS cost, count(*) AS lines
FROM v GROUP BY ALL;
