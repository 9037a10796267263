package store

import (
	"fmt"
	"runtime/debug"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// Recover is deferred around a function of the user that gets one object. It returns a panic as an error,
// where utilruntime.ReallyCrash is off, so that one object never stops its type; otherwise the panic goes on.
func Recover(err *error) {
	if utilruntime.ReallyCrash {
		return
	}
	if r := recover(); r != nil {
		*err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
	}
}

// Failure sums up what one index function could not index.
type Failure struct {
	// Key and Err are those of the first failure.
	Key string
	Err error
	// Objects counts them all.
	Objects int
}

// Failures are failures by index name. They are collected over a list, because reporting each object of a
// large one would stall the reflector: utilruntime's error handler sleeps when it is called too often.
type Failures map[string]*Failure

func (f *Failures) note(index, key string, err error) {
	if have := (*f)[index]; have != nil {
		have.Objects++
		return
	}
	if *f == nil {
		*f = Failures{}
	}
	(*f)[index] = &Failure{Key: key, Err: err, Objects: 1}
}

func (f Failures) to(report func(Failures)) {
	if len(f) > 0 && report != nil {
		report(f)
	}
}

// IndexNotFoundError says that no index function of that name was ever added.
type IndexNotFoundError struct {
	// Name is the name that was asked for.
	Name string
}

// Error implements error.
func (e *IndexNotFoundError) Error() string { return "Index with name " + e.Name + " does not exist" }
