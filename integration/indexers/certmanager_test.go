package indexers_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/integration/harness"
)

type m = map[string]any

const configFile = "testdata/cert-manager.yaml"

// certificate returns a Certificate. A higher number gives a later expiry.
func certificate(namespace string, n int) *unstructured.Unstructured {
	issuer := m{"name": []string{"letsencrypt", "internal"}[n%2]}
	if n%3 == 0 {
		issuer["kind"] = "ClusterIssuer"
	}
	status := m{"conditions": []any{
		m{"type": "Ready", "status": []any{"True", "False"}[n%2], "reason": "Test",
			"message": "a long story"},
		m{"type": "Issuing", "status": []any{"False", "True"}[n%2], "reason": "Test"},
	}}
	if n%4 > 0 {
		status["notAfter"] = fmt.Sprintf("2026-%02d-01T00:00:00Z", 1+n)
		status["revision"] = int64(n)
	}
	return &unstructured.Unstructured{Object: m{
		"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
		"metadata": m{"namespace": namespace, "name": fmt.Sprintf("cert-%d", n)},
		"spec": m{
			"secretName": fmt.Sprintf("secret-%d",
				n/2), "issuerRef": issuer, "duration": fmt.Sprintf("%dh0m0s", 24*(n+1)),
			"dnsNames":    []any{fmt.Sprintf("WWW.%d.example.com", n), fmt.Sprintf("%d.example.org", n)},
			"ipAddresses": []any{fmt.Sprintf("10.0.0.%d", 8+n)}, "isCA": n == 5,
		},
		"status": status,
	}}
}

// TestConfigFitsTheRealSchemas validates the config with cert-manager's schemas. Errors must suggest the
// remedy.
func TestConfigFitsTheRealSchemas(t *testing.T) {
	crds := decodeDefinitions(t, harness.ReadManifests(t, harness.CertManagerCRDsPath(t)))
	config, err := indexers.Load(configFile)
	if err != nil {
		t.Fatal(err)
	}
	warnings, err := config.Check(crds)
	if err != nil || len(warnings)+len(config.Warnings) > 0 {
		t.Errorf("config warnings %v, schema warnings %v, %v, want none", config.Warnings, warnings, err)
	}
	data, err := os.ReadFile(configFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, typo := range []struct{ right, wrong, want string }{
		{".spec.secretName", ".spec.secretname",
			"E301: .spec.secretname is not in certificates.cert-manager.io/v1; did you mean .spec.secretName?"},
		{".spec.issuerRef.name}", ".spec.issuerRef}", "E306: .spec.issuerRef is a map"},
		{".spec.dnsNames[*]", ".spec.dnsNames.name", "E302: .name on .spec.dnsNames, which is a list"},
		{"path: .spec.isCA, type: Bool", "path: .spec.isCA, type: Int", "E307: .spec.isCA is a boolean"},
		{"kind: CertificateRequest", "kind: CertificateRequests",
			`E304: CertificateRequests.cert-manager.io is not in the given CRDs; did you mean "CertificateRequest"?`},
		{"version: v1, resource: certificates", "version: v1alpha2, resource: certificates", "E305"},
		{"path: .status.state", "path: .status.stage", "E301: .status.stage is not in"},
	} {
		text := strings.Replace(string(data), typo.right, typo.wrong, 1)
		if typo.wrong == "path: .spec.isCA, type: Int" {
			text = strings.Replace(text, "default: 'false'", "missing: Skip", 1)
		}
		broken, err := indexers.Parse(indexers.Source{Name: "c.yaml", Data: []byte(text)})
		if err != nil {
			t.Errorf("Parse with %s: %v", typo.wrong, err)
			continue
		}
		if _, err := broken.Check(crds); err == nil || !strings.Contains(err.Error(), typo.want) {
			t.Errorf("%s: got %v, want %s", typo.wrong, err, typo.want)
		}
	}
}

func TestCertManager(t *testing.T) {
	harness.InstallCRDs(t, harness.ReadManifests(t, harness.CertManagerCRDsPath(t))...)
	namespace := harness.Namespace(t)
	var objects []*unstructured.Unstructured
	for n := range 8 {
		objects = append(objects, certificate(namespace, n))
	}
	harness.Apply(t, objects...)
	config, err := indexers.Load(configFile)
	if err != nil {
		t.Fatal(err)
	}
	s := newFixture(t)
	crds, err := bind.Definitions(s.ctx, s.admin)
	if err != nil {
		t.Fatal(err)
	}
	if warnings, err := config.Check(crds); err != nil || len(warnings) > 0 {
		t.Errorf("Check() with the server's definitions = %v, %v, want no warnings", warnings, err)
	}
	b := s.bindConfig(config)
	keys := func(numbers ...int) (out []string) {
		for _, n := range numbers {
			out = append(out, fmt.Sprintf("%s/cert-%d", namespace, n))
		}
		return out
	}
	for _, test := range []struct {
		query string
		want  []string
	}{
		{"issuer=ClusterIssuer/letsencrypt", keys(0, 6)},
		{"issuer^=ClusterIssuer", keys(0, 3, 6)},
		{"dns=www.3.example.com", keys(3)},
		{"dns^=www.", keys(0, 1, 2, 3, 4, 5, 6, 7)},
		{"ip>=10.0.0.10 && ip<10.0.0.12", keys(2, 3)},
		{"expiry<2026-05-01T00:00:00Z", keys(1, 2, 3)},
		{"expiry>=9000-01-01T00:00:00Z", keys(0, 4)},
		{"duration in [48h, 96h)", keys(1, 2)},
		{"revision>5", keys(6, 7)},
		{"!revision", keys(0, 4)},
		{"ca=true", keys(5)},
		{"condition=Ready/False && !(issuer^=ClusterIssuer)", keys(1, 5, 7)},
		{"condition=Ready/True && condition=Issuing/True", nil},
		{"not-ready=" + namespace, keys(1, 3, 5, 7)},
		{"namespace=" + namespace + ` && where('@.spec.duration == "24h0m0s"')`, keys(0)},
	} {
		s.awaitQuery(b, "certificates", test.query, test.want...)
	}
	querier, err := b.Querier("certificates")
	if err != nil {
		t.Fatal(err)
	}
	sorted, err := querier.Keys(s.ctx, query.Exists("revision"),
		query.Options{SortBy: "expiry", Descending: true, Limit: 3})
	if err != nil || !slices.Equal(sorted, keys(7, 6, 5)) {
		t.Errorf("Keys sorted by expiry = %v, %v; want revisions 7, 6 and 5", sorted, err)
	}
	compareWithServer(s, querier, namespace)
	testSubscription(s, b, namespace)
}

// compareWithServer compares query results with the server's objects, except pruned fields.
func compareWithServer(s *fixture, querier *query.Querier, namespace string) {
	s.Helper()
	result, err := querier.Query(s.ctx, query.Namespace(namespace), query.Options{})
	if err != nil || result.Len() != 8 || !result.Freshness.Synced ||
		result.Freshness.ResourceVersion == "" ||
		result.Freshness.LastContact.IsZero() {
		s.Fatalf("got the result %+v, %v", result, err)
	}
	certificates := s.admin.Resource(schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1",
		Resource: "certificates"}).Namespace(namespace)
	for key, object := range result.All() {
		want, err := certificates.Get(s.ctx, object.GetName(), metav1.GetOptions{})
		if err != nil {
			s.Fatal(err)
		}
		if object.GetResourceVersion() != want.GetResourceVersion() || key != namespace+"/"+want.GetName() {
			s.Errorf("%s has version %s, want %s", key, object.GetResourceVersion(), want.GetResourceVersion())
		}
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		if _, has := conditions[0].(m)["message"]; has || len(object.GetManagedFields()) > 0 ||
			len(want.GetManagedFields()) == 0 {
			s.Errorf("%s was not pruned: %v", key, conditions)
		}
	}
}

// testSubscription changes objects while a query is watched.
func testSubscription(s *fixture, b *bind.Binding, namespace string) {
	s.Helper()
	target, err := b.Target("certificates")
	if err != nil {
		s.Fatal(err)
	}
	q := query.And(query.Namespace(namespace), query.Less("expiry", "2026-03-01T00:00:00Z"))
	matcher, err := query.NewMatcher(q, target.Resource.Indexes...)
	if err != nil {
		s.Fatal(err)
	}
	events := make(chan query.Event, 100)
	subscription, err := query.Subscribe(target.Informer, matcher, func(e query.Event) { events <- e })
	if err != nil {
		s.Fatal(err)
	}
	expect := func(want string) {
		s.Helper()
		for {
			select {
			case e := <-events:
				got := fmt.Sprint(e.Type, " ", e.Key, " ", e.Gone)
				if e.Type == query.Modified {
					continue // spec and status are applied separately
				}
				if got != want {
					s.Errorf("the subscription sent %s, want %s", got, want)
				}
				return
			case <-s.ctx.Done():
				s.Fatalf("timeout before event %s", want)
			}
		}
	}
	expect("Added " + namespace + "/cert-1 false")
	renewed := certificate(namespace, 1)
	renewed.Object["status"].(m)["notAfter"] = "2027-01-01T00:00:00Z"
	harness.Apply(s, renewed)
	expect("Deleted " + namespace + "/cert-1 false")
	harness.Apply(s, certificate(namespace, 1))
	expect("Added " + namespace + "/cert-1 false")
	certificates := s.admin.Resource(target.GVR).Namespace(namespace)
	if err := certificates.Delete(s.ctx, "cert-1", metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
	expect("Deleted " + namespace + "/cert-1 true")
	if err := subscription.Stop(); err != nil {
		s.Error(err)
	}
}
