package crdcached_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// openStream starts a watch. The test's cleanup closes the body.
func openStream(t *testing.T, config *rest.Config, path string) *http.Response {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	must(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
	must(t, err)
	response, err := client.Do(r)
	must(t, err)
	t.Cleanup(func() { response.Body.Close() })
	return response
}

// TestLostRights checks that a watch ends after its server-side lifetime, and that a new one is refused after
// the right was revoked.
func TestLostRights(t *testing.T) {
	s := harness.StartCrdcached(t, "types: [namespaces]\nwatches: {min: 1s, max: 2s}\n",
		"--authorization-webhook-cache-authorized-ttl=1s")
	user := harness.NewUser(t, "leaver")
	revoke := user.Grant(t, "", newPolicyRule("watch", "namespaces"))
	config := s.As(user.Config(t))
	const path = "/api/v1/namespaces?watch=true&timeoutSeconds=86400"
	watch := openStream(t, config, path)
	if watch.StatusCode != http.StatusOK {
		t.Fatalf("the watch got %s, want 200", watch.Status)
	}
	revoke()
	events := bufio.NewScanner(watch.Body)
	for events.Scan() {
	}
	if events.Err() != nil {
		t.Errorf("the watch ended with the error %v, want none", events.Err())
	}
	harness.Eventually(t, func(context.Context) error { // the server caches decisions for a second
		if again := send(t, config, http.MethodGet, path); again.Code != http.StatusForbidden {
			return fmt.Errorf("another watch is %d", again.Code)
		}
		return nil
	})
}

// TestEndOfServer checks that a graceful stop ends watches properly, so that clients can continue elsewhere.
func TestEndOfServer(t *testing.T) {
	s := harness.StartCrdcached(t, "types: [namespaces]\n")
	watch := openStream(t, s.As(harness.Config(t)), "/api/v1/namespaces?watch=true&allowWatchBookmarks=true")
	events := bufio.NewScanner(watch.Body)
	if !events.Scan() {
		t.Fatal("the watch ended without events")
	}
	if err := s.Stop(); err != nil {
		t.Errorf("Stop() = %v", err)
	}
	last := ""
	for events.Scan() {
		last = events.Text()
	}
	if events.Err() != nil || !strings.HasPrefix(last, `{"type":"BOOKMARK"`) {
		t.Errorf("the watch ended with %v after %s, want a bookmark last", events.Err(), last)
	}
}

// TestCertificateReload replaces the serving certificate without a restart.
func TestCertificateReload(t *testing.T) {
	folder := t.TempDir()
	cert, key := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	replace := func(host string) {
		certificate, private, err := certutil.GenerateSelfSignedCertKey(host, nil, nil)
		if err := errors.Join(err, os.WriteFile(cert, certificate, 0o600),
			os.WriteFile(key, private, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	replace("127.0.0.1")
	s := harness.StartCrdcached(t, "types: [namespaces]\n", "--tls-cert-file", cert, "--tls-private-key-file", key)
	replace("replaced.example")
	harness.Eventually(t, func(ctx context.Context) error {
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
		c, err := dialer.DialContext(ctx, "tcp", strings.TrimPrefix(s.URL, "https://"))
		if err != nil {
			return err
		}
		defer c.Close()
		if names := c.(*tls.Conn).ConnectionState().PeerCertificates[0].DNSNames; len(names) == 0 ||
			names[0] != "replaced.example" {
			return fmt.Errorf("the certificate is for %v", names)
		}
		return nil
	})
}

// TestAudit expects an audit event with user and result for each request.
func TestAudit(t *testing.T) {
	folder := t.TempDir()
	policy, log := filepath.Join(folder, "policy.yaml"), filepath.Join(folder, "audit.log")
	text := "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"
	must(t, os.WriteFile(policy, []byte(text), 0o600))
	s := harness.StartCrdcached(t, "types: [namespaces]\n", "--audit-policy-file", policy, "--audit-log-path", log)
	user := harness.NewUser(t, "watched")
	if got := send(t, s.As(user.Config(t)), http.MethodGet,
		"/query/api/v1/namespaces"); got.Code != http.StatusForbidden {
		t.Errorf("response = %d, want 403", got.Code)
	}
	must(t, s.Stop())
	written, err := os.ReadFile(log)
	must(t, err)
	for line := range strings.Lines(string(written)) {
		var event struct {
			Verb, RequestURI string
			User             struct{ Username string }
			ResponseStatus   struct{ Code int }
			Stage            string
		}
		must(t, json.Unmarshal([]byte(line), &event))
		if event.Stage == "ResponseComplete" && event.User.Username == user.Username &&
			event.Verb == "list" && event.ResponseStatus.Code == http.StatusForbidden {
			return
		}
	}
	t.Errorf("the audit log does not contain the denied request: %s", written)
}

// TestTooManyWatches checks that a user with too many watches gets a retriable refusal.
func TestTooManyWatches(t *testing.T) {
	s := harness.StartCrdcached(t, "types: [namespaces]\nlimits: {watches: 1}\n")
	config := s.As(harness.Config(t))
	openStream(t, config, "/api/v1/namespaces?watch=true")
	got := send(t, config, http.MethodGet, "/api/v1/namespaces?watch=true")
	if got.Code != http.StatusTooManyRequests || got.Header.Get("Retry-After") == "" ||
		!strings.Contains(got.Body, `"retryAfterSeconds":1`) {
		t.Errorf("the second watch = %d, %v, %s, want 429 with Retry-After", got.Code, got.Header, got.Body)
	}
	other := harness.NewUser(t, "other")
	other.Grant(t, "", newPolicyRule("watch", "namespaces"))
	if watch := openStream(t, s.As(other.Config(t)),
		"/api/v1/namespaces?watch=true"); watch.StatusCode != http.StatusOK {
		t.Errorf("the watch of another user got %s, want 200", watch.Status)
	}
	metrics := send(t, config, http.MethodGet, "/metrics")
	for _, want := range []string{
		`crdcached_refused_requests_total{limit="watches"} 1`, "crdcached_watches 2", `crdcache_objects{`,
		`apiserver_longrunning_requests{component="crdcached",group="",resource="namespaces"`,
	} {
		if !strings.Contains(metrics.Body, want) {
			t.Errorf("the metrics have no %s", want)
		}
	}
}

// TestOutage checks that the server stays ready during an outage of the API server, and that its clients
// recover.
func TestOutage(t *testing.T) {
	s := harness.StartCrdcached(t, "types: [serviceaccounts]\n")
	user := harness.NewUser(t, "changed")
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: s.As(harness.Config(t))})
	must(t, err)
	t.Cleanup(func() {
		if err := factory.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	accounts := schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	informer, err := factory.ForResource(accounts)
	if err == nil {
		err = factory.Start(t.Context())
	}
	if err == nil {
		err = factory.WaitForSync(t.Context())
	}
	must(t, err)
	harness.KillAPIServer(t)
	if got := send(t, s.As(&rest.Config{}), http.MethodGet, "/readyz"); got.Code != http.StatusOK {
		t.Errorf("/readyz without an API server = %s, want ready", got.Body)
	}
	harness.RestartAPIServer(t)
	admin, err := dynamic.NewForConfig(harness.Config(t))
	must(t, err)
	patch := []byte(`{"metadata":{"annotations":{"after":"outage"}}}`)
	if _, err := admin.Resource(accounts).Namespace("default").Patch(t.Context(), user.Name,
		types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, func(context.Context) error {
		object, ok := informer.Snapshot().Get("default/" + user.Name)
		if !ok || object.(metav1.Object).GetAnnotations()["after"] != "outage" {
			return fmt.Errorf("no event of the change: %s", informer.Status())
		}
		return nil
	})
}

// TestCostlyIndex starts crdcached with an index that takes long for an object. The process caches the type
// without the index and reports why. A stop signal during the first list ends it with success, so all caches
// have ended in time.
func TestCostlyIndex(t *testing.T) {
	widgets, namespace := installWidgets(t), harness.Namespace(t)
	objects := adminClient(t).Resource(widgets).Namespace(namespace)
	inParallel(500, func(i int) error {
		_, err := objects.Create(t.Context(), newObject(widgets, nameOf(i), "1"), metav1.CreateOptions{})
		return err
	}, t.Fatal)
	const digits = "[0,1,2,3,4,5,6,7,8,9].map"
	slow := strings.NewReplacer("MAP", digits).Replace(
		"MAP(a, MAP(b, MAP(c, MAP(d, MAP(e, a + b + c + d + e))))).size()")
	file := filepath.Join(t.TempDir(), "indexes.yaml")
	text := fmt.Sprintf(`{apiVersion: crdcache.dev/v1beta1, kind: IndexConfig, metadata: {name: a}, spec: {resources: [
  {name: r, match: {group: %s, resource: widgets}, indexes: [{name: slow, cel: '%s'}, {name: value, path: .metadata.labels.value}]}]}}`,
		widgets.Group, slow)
	must(t, os.WriteFile(file, []byte(text), 0o600))
	kubeconfig, config := harness.CrdcachedKubeconfig(t), fmt.Sprintf("indexConfigs: [%q]\n", file)
	stopped := harness.LaunchCrdcached(t, kubeconfig, config)
	harness.Eventually(t, func(context.Context) error {
		answer := send(t, stopped.As(harness.Config(t)), http.MethodGet, "/readyz/types")
		if !strings.Contains(answer.Body, "]widgets.") {
			return fmt.Errorf("the types are %s, want widgets", answer.Body)
		}
		return nil
	})
	if err := stopped.Stop(); err != nil {
		t.Errorf("after a stop signal during the first list, crdcached ends with %v", err)
	}
	server := harness.StartCrdcachedIn(t, kubeconfig, config)
	get := func(path string) (code int, body string) {
		answer := send(t, server.As(harness.Config(t)), http.MethodGet, path)
		return answer.Code, answer.Body
	}
	harness.Eventually(t, func(context.Context) error {
		if _, body := get("/readyz/types"); !strings.Contains(body, `cached without the index "slow": the index "slow" takes `) {
			return fmt.Errorf("the types are %s, want a reason for the index slow", body)
		}
		return nil
	})
	path := "/query/apis/" + widgets.Group + "/v1/widgets?count=true&q="
	if code, body := get(path + "value%3D1"); code != http.StatusOK || !strings.Contains(body, `"count":500`) {
		t.Errorf("the query by another index = %d %s, want 500 objects", code, body)
	}
	if code, body := get(path + "slow%3D10"); code != http.StatusBadRequest {
		t.Errorf("the query by the costly index = %d %s, want 400", code, body)
	}
}
