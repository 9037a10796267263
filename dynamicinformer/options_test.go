package dynamicinformer

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

func TestNewChecksOptions(t *testing.T) {
	config := &rest.Config{Host: "http://127.0.0.1:1"}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		options Options
		want    string // part of the error; empty for none
	}{
		"client":                   {Options{Client: client}, ""},
		"config":                   {Options{Config: config}, ""},
		"config and http client":   {Options{Config: config, HTTPClient: http.DefaultClient}, ""},
		"index":                    {Options{Config: config, Indexers: cache.Indexers{"x": cache.MetaNamespaceIndexFunc}}, ""},
		"nothing":                  {Options{}, "one of Client and Config is required"},
		"http client alone":        {Options{HTTPClient: http.DefaultClient}, "one of Client and Config is required"},
		"client and config":        {Options{Client: client, Config: config}, "not both"},
		"client and http client":   {Options{Client: client, HTTPClient: http.DefaultClient}, "not both"},
		"config that is no good":   {Options{Config: &rest.Config{Host: "http://a b"}}, "making a dynamic client"},
		"nil index function":       {Options{Config: config, Indexers: cache.Indexers{"x": nil}}, `the index function "x" is nil`},
		"reserved index":           {Options{Config: config, Indexers: cache.Indexers{"namespace": cache.MetaNamespaceIndexFunc}}, "cannot be replaced"},
		"negative resync":          {Options{Config: config, Resync: -1}, "must not be negative"},
		"negative resync, client":  {Options{Client: client, Resync: -1}, "must not be negative"},
		"reserved and nil at once": {Options{Config: config, Indexers: cache.Indexers{"namespace": nil}}, `"namespace"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := New(tt.options)
			if tt.want == "" {
				if err != nil || f == nil {
					t.Fatalf("New = %v, %v; want a factory", f, err)
				}
				return
			}
			if err == nil || f != nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New = %v, %v; want an error with %q", f, err, tt.want)
			}
		})
	}
}
