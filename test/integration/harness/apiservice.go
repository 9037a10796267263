package harness

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var APIServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1",
	Resource: "apiservices"}

// RegisterAPIService makes the API server proxy a group version to a port of this machine. It returns the
// APIService, which is deleted when the test ends.
func RegisterAPIService(t testing.TB, gv schema.GroupVersion, port int) *unstructured.Unstructured {
	t.Helper()
	namespace := Namespace(t)
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"namespace": namespace, "name": "aggregated"},
		"spec":     map[string]any{"type": "ExternalName", "externalName": "localhost"},
	}}
	registration := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": APIServices.GroupVersion().String(), "kind": "APIService",
		"metadata": map[string]any{"name": gv.Version + "." + gv.Group},
		"spec": map[string]any{
			"group": gv.Group, "version": gv.Version, "groupPriorityMinimum": int64(100),
			"versionPriority":       int64(100),
			"service":               map[string]any{"namespace": namespace, "name": "aggregated", "port": int64(port)},
			"insecureSkipTLSVerify": true,
		},
	}}
	Apply(t, service, registration)
	return registration
}
