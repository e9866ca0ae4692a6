package ddl_test

import (
	"errors"
	"fmt"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
)

func ExampleParse() {
	st, err := ddl.Parse("CREATE VIEW Late AS SELECT * FROM flights WHERE dep_delay > 60;")
	if err != nil {
		fmt.Println(err)
		return
	}
	create := st.(*viewkeeper.Create)
	fmt.Println(create.Kind, create.Name)
	fmt.Println(create.Body.Text)
	// Output:
	// view main.late
	// SELECT * FROM flights WHERE dep_delay > 60
}

func ExampleParse_refused() {
	text := "CREATE MATERIALIZED VIEW daily WITH (\n  time_colum = 'day'\n)"
	_, err := ddl.Parse(text)
	var refusal *viewkeeper.Error
	if errors.As(err, &refusal) {
		at := viewkeeper.PositionAt(text, refusal.Offset)
		fmt.Printf("%s in line %d, column %d: %s\n", refusal.Code, at.Line, at.Column, refusal.Message)
	}
	// Output:
	// OPTION in line 2, column 3: main.daily has no option time_colum; did you mean time_column?
}

func ExampleSplit() {
	script := `
-- two units and a query
CREATE VIEW a AS SELECT ';' AS x;
BEGIN; DROP VIEW b; DROP VIEW c; COMMIT;
SELECT * FROM a;`
	for _, piece := range ddl.Split(script) {
		fmt.Printf("%v %q\n", piece.Query, piece.Text)
	}
	// Output:
	// false "-- two units and a query\nCREATE VIEW a AS SELECT ';' AS x;"
	// false "BEGIN; DROP VIEW b; DROP VIEW c; COMMIT;"
	// true "SELECT * FROM a;"
}

func ExampleFill() {
	query, places := ddl.Fill("SELECT * FROM t WHERE at >= {begin} AND at < '{end}'", map[string]string{
		ddl.Begin: "2013-01-01 00:00:00+00",
		ddl.End:   "2013-01-02 00:00:00+00",
	})
	fmt.Println(query)
	fmt.Println(places.Source(len(query)))
	// Output:
	// SELECT * FROM t WHERE at >= '2013-01-01 00:00:00+00' AND at < '2013-01-02 00:00:00+00'
	// 52
}
