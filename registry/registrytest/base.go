package registrytest

import "github.com/viewkeeper/viewkeeper/registry"

// BaseSQL is the base of the conformance suite and of the verdict scripts. It is
// small, and holds one of each thing that a naive tool trips over.
const BaseSQL = `
CREATE TABLE t(a INTEGER, b VARCHAR, c DOUBLE, ts TIMESTAMP);
CREATE TABLE u(a INTEGER, d INTEGER);
CREATE SCHEMA s2;
CREATE TABLE s2.t(z INTEGER);
CREATE TABLE "Mixed Case"("Weird Col" INTEGER, "select" INTEGER);
CREATE TABLE "order"("from" INTEGER);
CREATE TABLE sales(region VARCHAR, q VARCHAR, amt INTEGER);
CREATE TABLE st(info STRUCT(city VARCHAR, zip VARCHAR), tags VARCHAR[]);
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE MACRO addone(x) AS x + 1;
CREATE MACRO cnt() AS (SELECT count(*) FROM u);
CREATE MACRO tm(n) AS TABLE SELECT * FROM u LIMIT n;
`

// BaseRelations are the relations of BaseSQL, for a [Model].
func BaseRelations() []registry.Relation {
	return []registry.Relation{
		Relation("main.t", "a", "INTEGER", "b", "VARCHAR", "c", "DOUBLE", "ts", "TIMESTAMP"),
		Relation("main.u", "a", "INTEGER", "d", "INTEGER"),
		Relation("s2.t", "z", "INTEGER"),
		Relation(`main."Mixed Case"`, "Weird Col", "INTEGER", "select", "INTEGER"),
		Relation(`main."order"`, "from", "INTEGER"),
		Relation("main.sales", "region", "VARCHAR", "q", "VARCHAR", "amt", "INTEGER"),
		Relation("main.st", "info", "STRUCT(city VARCHAR, zip VARCHAR)", "tags", "VARCHAR[]"),
	}
}
