package experiment

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What a sandbox with many types holds.
const (
	// ManyTypes is how many types there are, and ManyEach how many objects each has.
	ManyTypes = 300
	ManyEach  = 20
)

// ManyGroupVersion is that of these types.
var ManyGroupVersion = schema.GroupVersion{Group: "many.example.com", Version: "v1"}

// ManyKind is the kind of one of them. The resource is called by it in lower case with an s.
func ManyKind(n int) string { return fmt.Sprintf("Thing%03d", n) }
