package follow

import "testing"

// TestCollection derives the type from the path, with any prefix.
func TestCollection(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/pods":                                    "/v1, Resource=pods",
		"/api/v1/namespaces/web/pods":                     "/v1, Resource=pods",
		"/api/v1/namespaces":                              "/v1, Resource=namespaces",
		"/apis/example.com/v1/gizmos":                     "example.com/v1, Resource=gizmos",
		"/k8s/clusters/c1/apis/g.io/v2/namespaces/a/x":    "g.io/v2, Resource=x",
		"/proxy/api/v1/secrets":                           "/v1, Resource=secrets",
		"/apis/example.com/v1/namespaces/web/gizmos/a":    "",
		"/apis/example.com/v1":                            "",
		"/api":                                            "",
		"/apis":                                           "",
		"/openapi/v3/apis/example.com/v1":                 "",
		"/apis/example.com/v1/namespaces/web/gizmos/a/st": "",
	} {
		gvr, ok := collection(path)
		if got := gvr.String(); ok != (want != "") || ok && got != want {
			t.Errorf("%s is %q (%v), want %q", path, got, ok, want)
		}
	}
}
