CREATE VIEW lines AS
SELECT *, l_extendedprice * (1 - l_discount) AS price, date_trunc('month', l_shipdate) AS month FROM lineitem;
CREATE VIEW view_air AS SELECT l_partkey, sum(price) AS price, sum(l_quantity) AS quantity, count(*) AS lines
FROM lines WHERE l_shipmode LIKE '%AIR' GROUP BY ALL;
CREATE VIEW view_land AS SELECT month, l_suppkey, sum(price) AS price, sum(l_quantity) AS quantity, count(*) AS lines
FROM lines WHERE l_shipmode IN ('RAIL', 'TRUCK', 'MAIL') GROUP BY ALL;
CREATE VIEW view_sea AS SELECT l_suppkey, l_returnflag, sum(price) AS price, sum(l_quantity) AS quantity, count(*) AS lines
FROM lines WHERE l_shipmode IN ('SHIP', 'FOB') GROUP BY ALL;
CREATE VIEW view_month AS SELECT month, sum(price) AS price, count(*) AS lines, min(l_orderkey) AS first_order
FROM lines GROUP BY ALL;
CREATE VIEW view_status AS SELECT l_returnflag, l_linestatus, sum(price) AS price, sum(l_quantity) AS quantity,
  count(*) AS lines FROM lines GROUP BY ALL;
