package convert

import (
	stdjson "encoding/json"
	"reflect"
	goruntime "runtime"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/json"
)

// sourceLine is a function's position in the source code.
type sourceLine struct {
	file string
	line int
}

func sourceLineOf(transform toolscache.TransformFunc) sourceLine {
	pc := reflect.ValueOf(transform).Pointer()
	if f := goruntime.FuncForPC(pc); f != nil {
		file, line := f.FileLine(pc)
		return sourceLine{file, line}
	}
	return sourceLine{}
}

// stripSourceLine is the position of the function that cache.TransformStripManagedFields returns.
var stripSourceLine = sync.OnceValue(func() sourceLine {
	return sourceLineOf(cache.TransformStripManagedFields())
})

// StripsManagedFields reports whether a transform is cache.TransformStripManagedFields. It compares
// positions in the source, because the compiler may create several copies of the function. If it is not
// recognized, it runs like any other transform.
func StripsManagedFields(transform toolscache.TransformFunc) bool {
	at := sourceLineOf(transform)
	return at != sourceLine{} && at == stripSourceLine()
}

// Transform wraps a transform that expects objects of the form. An object that does not fit the form is
// stored unchanged.
func (c *Converter) Transform(inner toolscache.TransformFunc) toolscache.TransformFunc {
	if c.form == Unstructured {
		return inner
	}
	return func(in any) (any, error) {
		if _, ok := in.(*unstructured.Unstructured); !ok {
			return inner(in)
		}
		object, err := c.convert(in)
		if err != nil {
			// readers get the error; returning it here would keep the previous object.
			return in, nil //nolint:nilerr
		}
		out, err := inner(object)
		if err != nil || reflect.TypeOf(out) != c.Pointer {
			return out, err // readers get an error for other types
		}
		u := &unstructured.Unstructured{}
		text, err := stdjson.Marshal(out)
		if err == nil {
			err = json.UnmarshalCaseSensitivePreserveInts(text, &u.Object)
		}
		if err != nil {
			return nil, c.misfitError(out, err)
		}
		if kind := out.(client.Object).GetObjectKind().GroupVersionKind(); kind.Empty() {
			u.SetGroupVersionKind(c.gvk)
		}
		return u, nil
	}
}
