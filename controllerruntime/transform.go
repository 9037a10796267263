package controllerruntime

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

// place is where in its source a func is.
type place struct {
	file string
	line int
}

func placeOf(transform toolscache.TransformFunc) place {
	pc := reflect.ValueOf(transform).Pointer()
	if f := goruntime.FuncForPC(pc); f != nil {
		file, line := f.FileLine(pc)
		return place{file, line}
	}
	return place{}
}

// stripPlace is where controller-runtime has the func that TransformStripManagedFields returns.
var stripPlace = sync.OnceValue(func() place { return placeOf(cache.TransformStripManagedFields()) })

// stripsManagedFields reports whether a transform is what TransformStripManagedFields returns. The compiler
// may make several copies of that, so that its place in the source tells it. One that is not recognised works
// as any other.
func stripsManagedFields(transform toolscache.TransformFunc) bool {
	at := placeOf(transform)
	return at != place{} && at == stripPlace()
}

// transform returns what has a transform work on objects of the form, and what is kept made of the result. An
// object that does not fit the form is kept as it is.
func (f *form) transform(inner toolscache.TransformFunc) toolscache.TransformFunc {
	if f.kind == unstructuredForm {
		return inner
	}
	return func(in any) (any, error) {
		if _, ok := in.(*unstructured.Unstructured); !ok {
			return inner(in)
		}
		object, err := f.convert(in)
		if err != nil {
			// readers are told; after an error they would miss it, or read what was there before
			return in, nil //nolint:nilerr
		}
		out, err := inner(object)
		if err != nil || reflect.TypeOf(out) != f.pointer {
			return out, err // readers are told of what is not of the form
		}
		u := &unstructured.Unstructured{}
		text, err := stdjson.Marshal(out)
		if err == nil {
			err = json.UnmarshalCaseSensitivePreserveInts(text, &u.Object)
		}
		if err != nil {
			return nil, f.failed(out, err)
		}
		if kind := out.(client.Object).GetObjectKind().GroupVersionKind(); kind.Empty() {
			u.SetGroupVersionKind(f.gvk)
		}
		return u, nil
	}
}
