CREATE VIEW _suppliers AS SELECT *, replace(s_phone, '-', ' ') AS phone FROM supplier;
CREATE VIEW creditors AS SELECT s_suppkey, s_name, phone AS s_phone, s_acctbal * 1.02 AS balance FROM _suppliers WHERE s_acctbal >= 0;
CREATE VIEW debtors AS SELECT s_suppkey, s_name, phone AS s_phone, s_acctbal * 1.05 AS balance FROM _suppliers WHERE s_acctbal < 0;
CREATE VIEW open_orders AS SELECT o_orderkey, o_custkey, year(o_orderdate) AS order_year, date_trunc('month', o_orderdate) AS month,
  o_totalprice FROM orders WHERE o_orderstatus = 'O';
CREATE VIEW filled_orders AS SELECT o_orderkey, o_custkey, year(o_orderdate) AS order_year, date_trunc('month', o_orderdate) AS month,
  o_totalprice FROM orders WHERE o_orderstatus = 'F';
CREATE VIEW partial_orders AS SELECT o_orderkey, o_custkey, year(o_orderdate) AS order_year, date_trunc('month', o_orderdate) AS month,
  o_totalprice FROM orders WHERE o_orderstatus = 'P';
CREATE VIEW by_air AS SELECT l_orderkey, l_linenumber, l_partkey, l_suppkey, l_extendedprice * (1 - l_discount) AS price,
  l_receiptdate - l_shipdate AS days
FROM lineitem WHERE l_shipmode IN ('AIR', 'REG AIR');
CREATE VIEW by_rail AS SELECT l_orderkey, l_linenumber, l_partkey, l_suppkey, l_extendedprice * (1 - l_discount) AS price
FROM lineitem WHERE l_shipmode IN ('RAIL') AND l_returnflag <> 'R';
CREATE VIEW by_truck AS SELECT l_orderkey, l_linenumber, l_partkey, l_suppkey, l_extendedprice * (1 - l_discount) AS price,
  l_receiptdate - l_shipdate AS days
FROM lineitem WHERE l_shipmode IN ('TRUCK');
CREATE VIEW by_mail AS SELECT l_orderkey, l_linenumber, l_partkey, l_suppkey, l_extendedprice * (1 - l_discount) AS price
FROM lineitem WHERE l_shipmode IN ('MAIL') AND l_returnflag <> 'R';
CREATE VIEW by_ship AS SELECT l_orderkey, l_linenumber, l_partkey, l_suppkey, l_extendedprice * (1 - l_discount) AS price,
  l_receiptdate - l_shipdate AS days
FROM lineitem WHERE l_shipmode IN ('SHIP');
CREATE VIEW by_fob AS SELECT l_orderkey, l_linenumber, l_partkey, l_suppkey, l_extendedprice * (1 - l_discount) AS price
FROM lineitem WHERE l_shipmode IN ('FOB') AND l_returnflag <> 'R';
