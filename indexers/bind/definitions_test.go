package bind_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/indexers/bind"
)

func TestDefinitions(t *testing.T) {
	s := newFixture(t)
	client, err := dynamic.NewForConfig(s.server)
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := bind.Definitions(s.ctx, client)
	if err != nil || len(definitions) != 1 {
		t.Fatalf("%d definitions, %v", len(definitions), err)
	}
	if _, err := parse(t, widgetsBySize).Check(definitions); err != nil {
		t.Error(err)
	}
	if _, err := parse(t, strings.Replace(widgetsBySize, ".spec.size", ".spec.sice",
		1)).Check(definitions); err == nil || !strings.Contains(err.Error(), "did you mean .spec.size?") {
		t.Errorf("got %v", err)
	}
	gone, cancel := context.WithCancel(s.ctx)
	cancel()
	if _, err := bind.Definitions(gone, client); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
