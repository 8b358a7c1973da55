CREATE VIEW v AS SELECT * FROM lineitem WHERE l_quantity <= 40;
CREATE VIEW u AS SELECT * FROM lineitem WHERE l_quantity <= 24;
CREATE VIEW z AS SELECT l_orderkey, sum(l_extendedprice) AS price, count(*) AS lines FROM u GROUP BY ALL;
CREATE VIEW t AS SELECT l_orderkey, l_shipmode, sum(l_extendedprice) AS price, count(*) AS lines FROM v GROUP BY ALL;
CREATE VIEW w AS SELECT l_orderkey, sum(l_extendedprice) AS price, count(DISTINCT l_shipmode) AS modes FROM v GROUP BY ALL;
CREATE VIEW q AS SELECT l_quantity, sum(l_extendedprice) AS price, count(*) AS lines FROM v GROUP BY ALL;
