package columns

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

// decoded converts decoded JSON to values.
var decoded = adapter{types.DefaultTypeAdapter}

type adapter struct{ types.Adapter }

func (a adapter) NativeToValue(value any) ref.Val {
	switch v := value.(type) {
	case nil:
		return nothing
	case map[string]any:
		return object{types.NewStringInterfaceMap(a, v)}
	case []any:
		return types.NewDynamicList(a, v)
	}
	return a.Adapter.NativeToValue(value)
}

// object is a map in which any field can be read.
type object struct{ traits.Mapper }

// Find implements traits.Mapper.
func (o object) Find(key ref.Val) (ref.Val, bool) {
	if value, ok := o.Mapper.Find(key); ok {
		return value, true
	}
	return nothing, true
}

// missing is the value of a missing field, and of null: an empty map.
type missing struct{ object }

var nothing ref.Val = missing{object{types.NewStringInterfaceMap(types.DefaultTypeAdapter, nil)}}

// environment returns the environment of the expressions. Its functions panic for other arguments than they
// expect, which is an error of the evaluation.
func environment() []cel.EnvOption {
	return []cel.EnvOption{
		cel.CustomTypeAdapter(decoded), ext.Strings(), ext.Lists(),
		cel.Variable("self", cel.DynType), cel.Variable("now", cel.StringType),
		unary("isSet", func(v ref.Val) any { return v != nothing }),
		unary("formatSelector", formatSelector), unary("sum", sum),
		binary("ageAt", ageAt), binary("joinAll", joinAll), binary("orElse", orElse),
	}
}

// unary declares a function x.name(), and binary x.name(y).
func unary(name string, f func(x ref.Val) any) cel.EnvOption {
	return cel.Function(name, cel.MemberOverload(name, []*cel.Type{cel.DynType}, cel.DynType,
		cel.UnaryBinding(func(x ref.Val) ref.Val { return decoded.NativeToValue(f(x)) })))
}

func binary(name string, f func(x, y ref.Val) any) cel.EnvOption {
	return cel.Function(name, cel.MemberOverload(name, []*cel.Type{cel.DynType, cel.DynType}, cel.DynType,
		cel.BinaryBinding(func(x, y ref.Val) ref.Val { return decoded.NativeToValue(f(x, y)) })))
}

func orElse(v, other ref.Val) any {
	if sized, ok := v.(traits.Sizer); ok && sized.Size() == types.IntZero {
		return other
	}
	return v
}

func ageAt(since, end ref.Val) any {
	if since == nothing {
		return "<unknown>"
	}
	timeOf := func(v ref.Val) time.Time { return must(time.Parse(time.RFC3339, textOf(v))) }
	return duration.HumanDuration(timeOf(end).Sub(timeOf(since)))
}

func formatSelector(v ref.Val) any {
	var selector metav1.LabelSelector
	content := v.Value().(map[string]any)
	must(0, runtime.DefaultUnstructuredConverter.FromUnstructured(content, &selector))
	return metav1.FormatLabelSelector(&selector)
}

func textOf(v ref.Val) string { return fmt.Sprint(cellOf(v)) }

func joinAll(list, separator ref.Val) any {
	var texts []string
	for it := list.(traits.Iterable).Iterator(); it.HasNext() == types.True; {
		texts = append(texts, textOf(it.Next()))
	}
	return strings.Join(texts, textOf(separator))
}

func sum(list ref.Val) any {
	total := types.IntZero
	for it := list.(traits.Iterable).Iterator(); it.HasNext() == types.True; {
		if n := it.Next(); n != nothing {
			total += n.(types.Int)
		}
	}
	return total
}
