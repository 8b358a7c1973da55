CREATE VIEW v AS SELECT r.A, r.B, r.C, total FROM r JOIN (SELECT A, sum(C) AS total FROM s GROUP BY A) AS p ON r.A = p.A
WHERE r.A < 10000;
CREATE VIEW z AS SELECT A, sum(total) AS total FROM v GROUP BY A;
CREATE VIEW w AS SELECT B, sum(total) AS total FROM v GROUP BY B;
