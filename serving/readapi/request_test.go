package readapi_test

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/crdcache/crdcache/serving/readapi"
)

func TestParseRequest(t *testing.T) {
	tests := map[string]string{ // method and path to verb, type, namespace, name and subresource
		"GET /api/v1/pods":                                          "list pods.v1. //",
		"GET /api/v1/namespaces/a":                                  "get namespaces.v1. /a/",
		"GET /api/v1/namespaces":                                    "list namespaces.v1. //",
		"PUT /api/v1/namespaces/a/finalize":                         "update namespaces.v1. /a/finalize",
		"GET /api/v1/namespaces/a/pods/b/log":                       "get pods.v1. a/b/log",
		"GET /apis/g.io/v1/namespaces/a/things?watch=true":          "watch things.v1.g.io a//",
		"GET /apis/g.io/v1/things?watch&sendInitialEvents=true":     "watch-list things.v1.g.io //",
		"GET /apis/g.io/v1/things?watch=false":                      "list things.v1.g.io //",
		"DELETE /apis/g.io/v1/things":                               "deletecollection things.v1.g.io //",
		"POST /apis/g.io/v1/things":                                 "create things.v1.g.io //",
		"PATCH /apis/g.io/v1/things/a":                              "patch things.v1.g.io /a/",
		"GET /apis/g.io/v1":                                         "",
		"GET /apis":                                                 "",
		"GET /version":                                              "",
		"GET /apis//v1/things":                                      "",
		"GET /apis/g.io/v1/namespaces/a/things/b/c/d":               "",
		"GET /apis/g.io/v1/things?watch=true&sendInitialEvents=yes": "watch things.v1.g.io //",
	}
	for line, want := range tests {
		t.Run(line, func(t *testing.T) {
			var method, path string
			if _, err := fmt.Sscan(line, &method, &path); err != nil {
				t.Fatal(err)
			}
			r, ok := readapi.ParseRequest(httptest.NewRequest(method, path, nil))
			got := ""
			if ok {
				got = fmt.Sprintf("%s %s.%s.%s %s/%s/%s", r.Verb, r.GVR.Resource, r.GVR.Version, r.GVR.Group,
					r.Namespace, r.Name, r.Subresource)
			}
			if got != want {
				t.Errorf("the parsed request is %q, want %q", got, want)
			}
		})
	}
}
