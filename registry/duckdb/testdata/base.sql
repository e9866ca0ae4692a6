-- The base of the planner's tests: one of each thing that a naive tool trips over.
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE t (a int, b varchar, c double, ts timestamp);
CREATE TABLE u (a int, d int);
CREATE SCHEMA s2;
CREATE TABLE s2.t (z int);
CREATE TYPE s2.size AS ENUM ('s', 'm', 'l');
CREATE TABLE "Mixed Case" ("Weird Col" int, "select" int);
CREATE TABLE "order" ("from" int);
CREATE TABLE sales (region varchar, q varchar, amt int);
CREATE TABLE st (info STRUCT(city varchar, zip varchar), tags varchar[]);
CREATE MACRO addone(x) AS x + 1;
CREATE MACRO cnt() AS (SELECT count(*) FROM u);
CREATE MACRO tm(n) AS TABLE SELECT * FROM u LIMIT n;
-- Beyond the usual: macros over macros, overloads, what is volatile and what is not allowed.
CREATE MACRO cnt2() AS cnt() + addone(cnt());
CREATE MACRO dice() AS 1 + floor(random() * 6)::int;
CREATE MACRO twice(x) AS x + x;
CREATE MACRO pick(x) AS x, (x, y) AS x + y + cnt();
CREATE MACRO plus(x, y := 10) AS x + y;
CREATE MACRO setting() AS current_setting('threads');
CREATE MACRO s2.three() AS 3;
CREATE MACRO since(d) AS TABLE SELECT * FROM t WHERE ts > now() - to_days(d);
CREATE VIEW x_files AS FROM 'x.parquet';
CREATE MACRO listing() AS TABLE FROM x_files;
CREATE VIEW clock AS SELECT now() AS now;
CREATE VIEW clock2 AS SELECT now AS later FROM clock;
INSERT INTO u VALUES (1, 2), (3, 4);
INSERT INTO sales SELECT region, q, amt FROM read_csv('sales.csv');
