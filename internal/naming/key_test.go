package naming

import (
	"testing"

	"k8s.io/client-go/tools/cache"
)

// FuzzKey verifies that keys are unique, because a key can be parsed into its name.
func FuzzKey(f *testing.F) {
	for _, name := range []string{"", "a", "a/b", "/", "..", " ", "a/", "/a"} {
		f.Add("", name)
		f.Add("web", name)
		f.Add(name, "a")
	}
	f.Fuzz(func(t *testing.T, namespace, name string) {
		want := cache.NewObjectName(namespace, name)
		key, ok := Key(want)
		got, err := cache.ParseObjectName(key)
		if ok != (err == nil && name != "" && got == want) {
			t.Errorf("Key(%q, %q) = %q, %v, which is parsed into %q, %v", namespace, name, key, ok, got, err)
		}
	})
}
