package references_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers/references"
)

// TestDroppedFields verifies that a source is refused if its informer drops a field that a reference reads.
func TestDroppedFields(t *testing.T) {
	certs := schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}
	kept := []string{".spec.issuerRef.group", ".spec.issuerRef.kind", ".spec.issuerRef.name"}
	for want, o := range map[string]dynamicinformer.ResourceOptions{
		`"secret" reads .spec.secretName`: {Keep: dynamicinformer.Keep{Paths: kept}},
		`"issuer" reads .spec.issuerRef.`: {Prune: dynamicinformer.Prune{Paths: []string{".spec.issuerRef"}}},
		"":                                {Keep: dynamicinformer.Keep{Paths: append(kept, ".spec.secretName")}},
	} {
		f, err := dynamicinformer.New(dynamicinformer.Options{Config: &rest.Config{Host: "none"}, Defaults: o})
		if err != nil {
			t.Fatal(err)
		}
		informer, err := f.ForResource(certs)
		if err != nil {
			t.Fatal(err)
		}
		g := references.New()
		_, err = g.Add(references.InformerSource{Type: certificates, References: parseReferences(t),
			Informer: informer})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("Add of an informer with %+v: got the error %v, want %q", o, err, want)
		}
		g.Close()
	}
}
