package crdcached_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/test/integration/harness"
)

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
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
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
