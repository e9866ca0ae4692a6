package registrytest

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Large gives a base and n CREATE VIEW statements over it, such as a large
// installation has: the same ones for the same n, in dependency order, each of 150
// to 900 bytes, in four schemas.
//
// The base is ten tables of 20 columns of mixed types, without rows, and the
// schemas. About 55 % of the statements read the base only: projections, filters,
// joins, aggregates, windows, CTEs. The others read definitions, up to six levels
// deep. [LargeRoot] is the first statement; min(1000, n/10) definitions read it
// directly, the last tenth of them also through another one, two levels deep. All
// its columns but extra are read somewhere.
//
// The base and the statements are plain DuckDB as well. n is at least 1.
func Large(n int) (base string, statements []string) {
	l := &large{rng: rand.New(rand.NewPCG(10_000, 100))}
	l.levels[1] = append(l.levels[1], LargeRoot)
	statements = append(statements, `CREATE VIEW `+LargeRoot+` AS
SELECT id, region, day, amount, quantity::BIGINT AS n, status, price, customer_id, place.city AS city, 1 AS extra
FROM orders
WHERE active AND amount > 0`)
	readers := min(1000, n/10)
	for i := 1; i < n; i++ {
		// The i-th statement is the k-th reader of the root where i crosses k/readers of n.
		k := i * readers / n
		if next := (i + 1) * readers / n; next > k || i == n-1 && k < readers {
			statements = append(statements, l.reader(i, k, readers))
			continue
		}
		statements = append(statements, l.other(i))
	}
	return largeBase(), statements
}

// LargeRoot is the definition that most others of [Large] read.
const LargeRoot = "large.root"

func largeSchemas() []string { return []string{"large", "sales", "ops", "finance"} }

func largeTables() []string {
	return []string{"orders", "customers", "products", "payments", "shipments", "visits", "tickets", "employees", "stock", "invoices"}
}

func largeBase() string {
	var b strings.Builder
	for _, s := range largeSchemas() {
		fmt.Fprintf(&b, "CREATE SCHEMA %s;\n", s)
	}
	for _, t := range largeTables() {
		fmt.Fprintf(&b, `CREATE TABLE %s (id BIGINT, customer_id INTEGER, product_id INTEGER, region VARCHAR, country VARCHAR, status VARCHAR,
  created TIMESTAMP, updated TIMESTAMP, day DATE, amount DOUBLE, price DECIMAL(12,2), quantity INTEGER, discount REAL, weight DOUBLE,
  active BOOLEAN, kind SMALLINT, note VARCHAR, tags VARCHAR[], place STRUCT(city VARCHAR, zip VARCHAR), total HUGEINT);
`, t)
	}
	return b.String()
}

// large makes the statements. Every definition has the columns id, region, day,
// amount and n, of the same types, so that any can read any.
type large struct {
	rng     *rand.Rand
	levels  [7][]string // names by level: level 1 reads the base only
	readers []string    // of the root
}

// reader is the k-th of the definitions that read the root.
func (l *large) reader(i, k, readers int) string {
	name := l.name(i, "root_reader")
	text := fmt.Sprintf("SELECT r.id, r.region, r.day, r.amount * %d.5 AS amount, r.n, r.status || '/' || r.city AS label, r.price + %d AS price,\n"+
		"  CASE WHEN r.customer_id %% %d = 0 THEN 'own' ELSE 'other' END AS part%s\nFROM %s r", 1+k%9, k, 2+k%7, l.extras("r.", l.rng.IntN(4)), LargeRoot)
	if k >= readers-readers/10 && len(l.readers) > 0 {
		other := l.readers[l.rng.IntN(len(l.readers))]
		text += fmt.Sprintf(" JOIN %s o ON o.id = r.id\nWHERE o.amount > %d", other, k)
		l.levels[3] = append(l.levels[3], name)
	} else {
		text += fmt.Sprintf("\nWHERE r.n > %d", k)
		l.levels[2] = append(l.levels[2], name)
		l.readers = append(l.readers, name)
	}
	return "CREATE VIEW " + name + " AS\n" + text
}

// other is a definition that does not read the root.
func (l *large) other(i int) string {
	level := 1
	// The readers of the root are a tenth: of the rest, 61 in 100 read the base, which
	// makes 55 of all.
	if l.rng.IntN(100) >= 61 {
		level = 2 + min(l.rng.IntN(5), l.rng.IntN(5))
		for len(l.levels[level-1]) == 0 {
			level--
		}
	}
	source := l.table
	if level > 1 {
		source = func() string { return l.below(level) }
	}
	shape := l.rng.IntN(6)
	shapes := []string{"list", "part", "with", "sums", "rank", "steps"}
	name := l.name(i, shapes[shape])
	l.levels[level] = append(l.levels[level], name)
	count := "s.n"
	if level == 1 {
		count = "s.quantity::BIGINT"
	}
	return "CREATE VIEW " + name + " AS\n" + l.body(shape, level, source(), count)
}

// body is a query of one of six shapes over a source s; count is s's expression of n.
func (l *large) body(shape, level int, source, count string) string {
	extras, k := l.rng.IntN(12), l.rng.IntN(1000)
	columns := fmt.Sprintf("s.id, s.region, s.day, s.amount, %s AS n", count)
	switch shape {
	case 0: // a projection
		return fmt.Sprintf("SELECT %s, s.amount * (1 + %d / 100.0) AS gross, coalesce(s.region, 'none') AS place_name%s\nFROM %s s", columns, k%30, l.extras("s.", extras), source)
	case 1: // a filter
		return fmt.Sprintf("SELECT %s%s\nFROM %s s\nWHERE s.amount BETWEEN %d AND %d AND s.region IN ('north', 'south', 'r%d')\n  AND s.day >= DATE '2020-01-01'",
			columns, l.extras("s.", extras+1), source, k, k+500, k)
	case 2: // a join of two
		with, key := l.table(), "id"
		if level > 1 {
			with = l.below(level)
		}
		return fmt.Sprintf("SELECT %s, t.amount AS other_amount, t.region AS other_region%s\nFROM %s s LEFT JOIN %s t ON t.%s = s.%s AND t.amount > %d\nWHERE s.region IS NOT NULL",
			columns, l.extras("s.", extras), source, with, key, key, k)
	case 3: // an aggregate
		return fmt.Sprintf("SELECT min(s.id) AS id, s.region, s.day, sum(s.amount) AS amount, count(*) AS n,\n  avg(s.amount) AS mean, max(s.amount) - min(s.amount) AS spread\nFROM %s s\nWHERE s.amount > %d\nGROUP BY s.region, s.day\nHAVING count(*) > %d",
			source, k, 1+k%5)
	case 4: // a window
		return fmt.Sprintf("SELECT %s,\n  row_number() OVER (PARTITION BY s.region ORDER BY s.day, s.id) AS place_in_region,\n  sum(s.amount) OVER (PARTITION BY s.region ORDER BY s.day ROWS BETWEEN %d PRECEDING AND CURRENT ROW) AS running%s\nFROM %s s",
			columns, 1+k%60, l.extras("s.", extras/2), source)
	default: // a CTE
		return fmt.Sprintf("WITH daily AS (\n  SELECT s.region, s.day, min(s.id) AS id, sum(s.amount) AS amount, sum(%s)::BIGINT AS n\n  FROM %s s WHERE s.amount > %d GROUP BY ALL\n)\n"+
			"SELECT d.id, d.region, d.day, d.amount, d.n, d.amount / nullif(d.n, 0) AS mean%s\nFROM daily d\nWHERE d.n > %d",
			count, source, k, l.extras("d.", extras/2), k%10)
	}
}

// extras are n more columns, made of those that every source has.
func (l *large) extras(of string, n int) string {
	var b strings.Builder
	for i := range n {
		k := l.rng.IntN(500)
		switch l.rng.IntN(4) {
		case 0:
			fmt.Fprintf(&b, ",\n  round(%samount / %d, 2) AS x%d", of, k+1, i)
		case 1:
			fmt.Fprintf(&b, ",\n  upper(%sregion) || '-%d' AS x%d", of, k, i)
		case 2:
			fmt.Fprintf(&b, ",\n  date_trunc('month', %sday) AS x%d", of, i)
		default:
			fmt.Fprintf(&b, ",\n  CASE WHEN %samount > %d THEN 1 ELSE 0 END AS x%d", of, k, i)
		}
	}
	return b.String()
}

func (l *large) name(i int, what string) string {
	return fmt.Sprintf("%s.%s_%05d", largeSchemas()[l.rng.IntN(4)], what, i)
}

func (l *large) table() string { return largeTables()[l.rng.IntN(10)] }

// below picks a definition one level below; the root is left to its readers.
func (l *large) below(level int) string {
	names := l.levels[level-1]
	if level == 2 && len(names) > 1 {
		names = names[1:]
	}
	return names[l.rng.IntN(len(names))]
}
