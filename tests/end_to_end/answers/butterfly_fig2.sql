CREATE VIEW t AS
SELECT lineitem.*, CAST(l_extendedprice * 100 AS BIGINT) AS cents, p.*
FROM lineitem JOIN (SELECT ps_suppkey, sum(ps_availqty) AS available, sum(ps_availqty * ps_supplycost) AS cost
  FROM partsupp GROUP BY ps_suppkey) AS p ON l_suppkey = ps_suppkey
WHERE l_suppkey < 1000;
CREATE VIEW z AS SELECT l_suppkey, sum(cents) AS cents, sum(l_quantity) AS quantity, count(*) AS lines FROM t GROUP BY ALL;
CREATE VIEW w AS SELECT l_partkey, sum(cents) AS cents, sum(l_quantity) AS quantity, count(*) AS lines FROM t GROUP BY ALL;
CREATE VIEW v AS SELECT l_suppkey, l_partkey, sum(cents) AS cents, sum(l_quantity) AS quantity, count(*) AS lines
FROM t GROUP BY ALL;
