package columns

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestHostileObjects prints random objects of each type, whose fields have any values. All cells are scalars.
func TestHostileObjects(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	names := regexp.MustCompile(`\.([a-z]\w+)`).FindAllStringSubmatch(string(columnsYAML), -1)
	var value func(depth int) any
	fields := func(depth int) map[string]any {
		object := map[string]any{}
		for range random.IntN(40) {
			object[names[random.IntN(len(names))][1]] = value(depth + 1)
		}
		return object
	}
	value = func(depth int) any {
		values := []any{nil, "", "Running", "2026-01-01T00:00:00Z", int64(-1), 0.5, true, []any{}, map[string]any{}}
		if n := random.IntN(len(values) + 5); n < len(values) || depth > 4 {
			return values[n%len(values)]
		} else if n%2 == 0 {
			return []any{value(depth + 1), value(depth + 1)}
		}
		return fields(depth)
	}
	for gr := range tables() {
		columns, cells := printTable(gr)
		for range 10 {
			object := fields(0)
			object["metadata"] = map[string]any{"name": "a"}
			for i, cell := range cells(object, time.Unix(0, 0)) {
				text, isText := cell.(string)
				if cell == nil || isText && columns[i].Format == "name" && columns[i].Name == "Name" && text != "a" ||
					strings.Contains(text, "{") {
					t.Fatalf("%s: %s is %v of %v", gr, columns[i].Name, cell, object)
				}
			}
		}
	}
}
