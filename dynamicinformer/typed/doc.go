// Package typed reads the objects of an informer as values of a Go struct. The struct needs no methods,
// no scheme and no generated code: its JSON tags select the fields, and other fields are ignored.
//
//	type Certificate struct {
//		metav1.ObjectMeta `json:"metadata"`
//		Spec struct{ SecretName string `json:"secretName"` } `json:"spec"`
//	}
//	certificates := typed.As[Certificate](informer)
//
// Each read converts the object, after decoding it if necessary: about ten microseconds for a kilobyte,
// mostly for allocations. Callers own the results and may change them. To read few of many objects,
// select them by label or index; to read all objects of a large cache repeatedly, use a handler that
// keeps the converted values.
package typed
