CREATE VIEW lines AS
SELECT l_orderkey, l_partkey, l_suppkey, l_shipmode, l_returnflag, l_quantity, l_extendedprice AS price FROM lineitem;
CREATE VIEW by_order AS SELECT l_orderkey, sum(price) AS price, sum(l_quantity) AS quantity, count(*) AS lines
FROM lines GROUP BY ALL;
CREATE VIEW by_order_part AS SELECT l_orderkey, l_partkey, sum(price) AS price, sum(l_quantity) AS quantity,
  count(*) AS lines FROM lines GROUP BY ALL;
CREATE VIEW by_order_supplier AS SELECT l_orderkey, l_suppkey, sum(price) AS price, sum(l_quantity) AS quantity,
  count(*) AS lines FROM lines GROUP BY ALL;
CREATE VIEW by_order_mode AS SELECT l_orderkey, l_shipmode, sum(price) AS price, sum(l_quantity) AS quantity,
  count(*) AS lines FROM lines GROUP BY ALL;
CREATE VIEW by_order_flag AS SELECT l_orderkey, l_returnflag, sum(price) AS price, sum(l_quantity) AS quantity,
  count(*) AS lines FROM lines GROUP BY ALL;
