// Package columns describes built-in types as API servers do: columns.yaml has the columns of each type, and
// schemas.zip has the schemas. A program that imports it describes them in files.
package columns

import (
	"cmp"
	_ "embed"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/filesource"
)

//go:embed columns.yaml
var columnsYAML []byte

// table has the columns of types, each named PLURAL or PLURAL.GROUP. Variables are values for the columns.
type table struct {
	Types              []string
	Variables, Columns []column
	compile            func() // once
	definitions        []metav1.TableColumnDefinition
}

// column is a column or a variable. CEL is an expression of the object, self.
type column struct {
	metav1.TableColumnDefinition
	CEL     string `json:"cel"`
	program cel.Program
}

func init() { filesource.Table, filesource.Schemas = printTable, builtinSchemas }

// printTable implements filesource.Table.
func printTable(gr schema.GroupResource) (columns []metav1.TableColumnDefinition,
	cells func(object map[string]any, now time.Time) []any) {
	t := tables()[gr]
	if t == nil {
		return nil, nil
	}
	t.compile()
	return t.definitions, t.cells
}

// tables returns all tables. They are compiled when they are used. A test finds all errors.
var tables = sync.OnceValue(func() map[schema.GroupResource]*table {
	var all []*table
	must(0, yaml.UnmarshalStrict(columnsYAML, &all))
	byType, options := map[schema.GroupResource]*table{}, environment()
	for _, t := range all {
		for _, name := range t.Types {
			byType[schema.ParseGroupResource(name)] = t
		}
		for _, v := range t.Variables {
			options = append(options, cel.Variable(v.Name, cel.DynType))
		}
	}
	env := must(cel.NewEnv(options...))
	for _, t := range all {
		t.compile = sync.OnceFunc(func() {
			for _, columns := range [][]column{t.Variables, t.Columns} {
				for i, c := range columns {
					checked, issues := env.Compile(c.CEL)
					columns[i].program = must(env.Program(must(checked, issues.Err())))
				}
			}
			for _, c := range t.Columns {
				c.Type = cmp.Or(c.Type, "string")
				t.definitions = append(t.definitions, c.TableColumnDefinition)
			}
		})
	}
	return byType
})

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func (t *table) cells(object map[string]any, now time.Time) []any {
	values := map[string]any{"self": decoded.NativeToValue(object), "now": now.Format(time.RFC3339Nano)}
	for _, v := range t.Variables {
		values[v.Name] = v.value(values)
	}
	cells := make([]any, len(t.Columns))
	for i, c := range t.Columns {
		cells[i] = cellOf(c.value(values))
		if cells[i] == "" && c.Type == "integer" {
			cells[i] = int64(0)
		}
	}
	return cells
}

// value evaluates an expression. An error is a value, too, so that it only affects the columns that read it.
func (c column) value(values map[string]any) ref.Val {
	value, _, err := c.program.Eval(values)
	if err != nil {
		return types.WrapErr(err)
	}
	return value
}

// cellOf returns the cell with a value. If an object does not have the fields of its type, it is <unknown>.
func cellOf(value ref.Val) any {
	switch v := value.(type) {
	case missing:
		return ""
	case types.String, types.Int, types.Bool, types.Double:
		return v.Value()
	}
	return "<unknown>"
}
