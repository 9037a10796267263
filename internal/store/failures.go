package store

import (
	"fmt"
	"runtime/debug"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// RecoverError recovers a panic of a user function on one object, and sets *err, so that no object stops its
// informer. Defer it before the call. If utilruntime.ReallyCrash is set, the panic continues.
func RecoverError(err *error) {
	if utilruntime.ReallyCrash {
		return
	}
	if r := recover(); r != nil {
		*err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
	}
}

// Failure summarizes the failures of one index function.
type Failure struct {
	// Key and Err describe the first failure.
	Key string
	Err error
	// Objects is the number of objects for which the index function failed.
	Objects int
}

// Failures are failures by index name. They are collected for a whole list and reported once, because
// utilruntime.HandleError sleeps if it is called too often, which would stall the reflector.
type Failures map[string]*Failure

func (f *Failures) add(index, key string, err error) {
	if existing := (*f)[index]; existing != nil {
		existing.Objects++
		return
	}
	if *f == nil {
		*f = Failures{}
	}
	(*f)[index] = &Failure{Key: key, Err: err, Objects: 1}
}

func (f Failures) reportTo(report func(Failures)) {
	if len(f) > 0 && report != nil {
		report(f)
	}
}

// IndexNotFoundError is returned for the name of an index that does not exist.
type IndexNotFoundError struct {
	// Name is the requested name.
	Name string
}

func (e *IndexNotFoundError) Error() string { return "Index with name " + e.Name + " does not exist" }
