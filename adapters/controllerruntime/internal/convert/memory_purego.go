//go:build purego

package convert

import (
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// unexported reads no memory of other packages, so that handlers of sources receive decoded objects.
func unexported(reflect.Value, string) any { return nil }

func unchangedHandler(handler.Funcs) handler.EventHandler { return nil }
