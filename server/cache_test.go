package server

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
)

// TestOneInformerOfDefinitions: package live, the page and the selection share one informer of
// CustomResourceDefinitions. Two informers would list them twice, and could not persist them in one folder.
func TestOneInformerOfDefinitions(t *testing.T) {
	config := DefaultConfig()
	c, err := newCache(t.Context(), &rest.Config{Host: "https://cluster.example"}, &config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.live.Close()
	p, err := newPage(c, PageConfig{}, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	view, _ := c.view(discovery.Resource{GVR: crd.GVR})
	kept, err := c.factory.Acquire(crd.GVR, view)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Release()
	if all := c.factory.Informers(); len(all) != 1 {
		t.Errorf("%d informers of CustomResourceDefinitions", len(all))
	}
}
