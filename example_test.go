package viewkeeper_test

import (
	"fmt"

	"github.com/viewkeeper/viewkeeper"
)

func ExampleParseName() {
	for _, text := range []string{"Daily", `report."daily"`, "vk.definitions", "a.b.c"} {
		name, err := viewkeeper.ParseName(text)
		if err == nil {
			err = name.Validate()
		}
		fmt.Println(name, err)
	}
	// Output:
	// main.daily <nil>
	// report.daily <nil>
	// vk.definitions NAME: vk.definitions is reserved: the schema vk is not for definitions; choose another schema
	//  NAME: "a.b.c" has 3 parts; a name is view or schema.view
}

func ExamplePositionAt() {
	p := viewkeeper.PositionAt("SELECT\n  delay", 9)
	fmt.Println(p.Line, p.Column)
	// Output: 2 3
}
