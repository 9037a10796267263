package query

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/internal/sortkey"
	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/naming"
)

type cell struct {
	// sortKey is the sort key, text the displayed value.
	sortKey, text string
	// isMissing is set if the object has no value.
	isMissing bool
	// isMistyped is set if the value does not have the column's type.
	isMistyped bool
}

func (c cell) value() string {
	if c.isMissing {
		return indexers.Null
	}
	return c.text
}

func (c cell) compare(other cell) int {
	if c.isMissing != other.isMissing {
		if c.isMissing {
			return 1
		}
		return -1
	}
	return strings.Compare(c.sortKey, other.sortKey)
}

// column reads the values that objects have in an index or at a path.
type column struct {
	name string
	// valueType is the type of the values; the zero value means unknown.
	valueType sortkey.Type
	cells     func(key string, item any) []cell
}

// repeatPerObject makes an index column return a value as often as the object has it. An index stores each
// value of an object once.
func (e *execution) repeatPerObject(col *column) error {
	if isPath(col.name) {
		return nil
	}
	index, err := e.schema.open(e.snapshot, col.name)
	switch {
	case err != nil:
		return err
	case index.declared == nil:
		return errors.New("the index stores each value of an object once, and no config declares its paths; " +
			"name a path instead")
	case index.isSingleValued():
		return nil
	}
	col.cells = func(_ string, item any) (cells []cell) {
		e.spend(bodyWork)
		for _, key := range index.functions.ValuesOfStored(item)[0] {
			if key != indexers.Null || index.isComposite() {
				cells = append(cells, cell{sortKey: key, text: index.displayKey(key)})
			}
		}
		return cells
	}
	return nil
}

// typeAt returns the type of the values at a path, from an index over the same path or from the schema.
func (e *execution) typeAt(path *jsonpath.Path) sortkey.Type {
	for _, name := range slices.Sorted(maps.Keys(e.schema)) {
		if typ := e.schema[name].TypeAt(path.String()); typ == sortkey.Quantity.String() ||
			typ == sortkey.Duration.String() {
			pathType, _ := sortkey.TypeNamed(typ)
			return pathType
		}
	}
	if e.definition == nil {
		return sortkey.Any
	}
	typ, _ := sortkey.TypeNamed(indexers.ColumnType(path.Expr(), e.definition, e.version))
	return typ
}

// column opens an index or compiles a path. assumedType is the type of a column without a declared type.
func (e *execution) column(name, assumedType string) (column, error) {
	if isPath(name) {
		path, err := jsonpath.Compile(name)
		if err == nil {
			err = checkStored(e.snapshot, path)
		}
		if err != nil {
			return column{}, err
		}
		c := column{name: name, valueType: e.typeAt(path)}
		c.setType(assumedType)
		c.cells = func(_ string, item any) []cell {
			e.spend(bodyWork)
			return naming.Map(textsOf(e.workMeter, item, path), c.cellOf)
		}
		return c, nil
	}
	index, err := e.schema.open(e.snapshot, name)
	if err != nil {
		return column{}, err
	}
	c := column{name: name}
	if index.declared != nil && !index.isComposite() {
		c.valueType, _ = sortkey.TypeNamed(index.declared.Types()[0])
	}
	hasAssumedType := c.setType(assumedType)
	keys := e.keysFunc(index)
	c.cells = func(object string, item any) (cells []cell) {
		for _, key := range keys(object, item) {
			if key == indexers.Null && !index.isComposite() {
				continue
			}
			keyCell := cell{sortKey: key, text: index.displayKey(key)}
			if hasAssumedType || !index.isSorted() {
				keyCell = c.cellOf(keyCell.text)
			}
			cells = append(cells, keyCell)
		}
		return cells
	}
	return c, nil
}

// setType sets the type of a column without a type, and reports whether it did.
func (c *column) setType(name string) bool {
	if name == "" || c.valueType != sortkey.Any {
		return false
	}
	c.valueType, _ = sortkey.TypeNamed(name)
	return true
}

// cellOf returns the cell of a value. Without a type, cells are in the natural order.
func (c *column) cellOf(text string) cell {
	switch c.valueType {
	case sortkey.Any:
		return cell{sortKey: naturalOrderKey(text), text: text}
	case sortkey.String:
		return cell{sortKey: text, text: text}
	}
	if key, ok := c.valueType.Key(text); ok {
		return cell{sortKey: key, text: text}
	}
	return cell{sortKey: "\xff" + text, text: text, isMistyped: true}
}

// naturalOrderKey returns a sort key: numbers and quantities before times, and times before other text.
func naturalOrderKey(text string) string {
	for i, typ := range []sortkey.Type{sortkey.Number, sortkey.Quantity, sortkey.Time} {
		if key, ok := typ.Key(text); ok {
			return string(rune('1'+i/2)) + key
		}
	}
	return "3" + text
}

// keysFunc returns a function that returns the keys of an object. For few candidates it computes them for
// each; otherwise it reads the whole index once.
func (e *execution) keysFunc(index openedIndex) func(object string, item any) []string {
	if keyCost := index.keyCost(); index.functions != nil && e.candidateCount()*keyCost <= e.snapshot.Len() {
		return func(object string, item any) []string {
			e.spend(keyCost)
			return index.keysOf(nil, object, item)
		}
	}
	keysByObject := map[string][]string{}
	index.eachKey(func(key string, _ int) bool {
		index.Objects(key, func(object string, _ any) bool {
			keysByObject[object] = append(keysByObject[object], key)
			return e.spend(1)
		})
		return e.spend(1)
	})
	return func(object string, _ any) []string { return keysByObject[object] }
}

// measureColumn is a column with the function that is computed over it.
type measureColumn struct {
	column
	function string
}

// openMeasure opens the column of a measure and checks that the function supports its type.
func (e *execution) openMeasure(m Measure) (measureColumn, error) {
	if _, err := ParseMeasure(m.String()); err != nil {
		return measureColumn{}, err
	}
	col, err := e.column(m.Operand, m.As)
	if err != nil {
		return measureColumn{}, err
	}
	if requestedType, _ := sortkey.TypeNamed(m.As); m.As != "" && col.valueType != requestedType {
		return measureColumn{}, fmt.Errorf("cannot compute %s: the values have type %s; leave out the type",
			m, col.valueType)
	}
	if m.Function == "sum" || m.Function == "avg" {
		if err := e.repeatPerObject(&col); err != nil {
			return measureColumn{}, fmt.Errorf("cannot compute %s: %w", m, err)
		}
		switch col.valueType {
		case sortkey.Any, sortkey.Int, sortkey.Number, sortkey.Quantity, sortkey.Duration:
		default:
			return measureColumn{}, fmt.Errorf("index %q: there is no %s of values of type %s; use min or max",
				m.Operand, m.Function, col.valueType)
		}
	}
	return measureColumn{col, m.Function}, nil
}
