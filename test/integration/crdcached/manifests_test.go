package crdcached_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/crdcache/crdcache/test/integration/harness"
)

const manifestsDir = "../../../serving/packaging/crdcached/"

// TestManifests applies the manifests of crdcached to an API server that rejects unknown fields. It checks
// that they grant only read rights and that the containers are restricted.
func TestManifests(t *testing.T) {
	monitoring, certificates := harness.PrometheusOperatorCRDsPath(t), harness.CertManagerCRDsPath(t)
	for _, file := range []string{
		filepath.Join(monitoring, "monitoring.coreos.com_servicemonitors.yaml"),
		filepath.Join(monitoring, "monitoring.coreos.com_scrapeconfigs.yaml"),
		filepath.Join(certificates, "cert-manager.io_certificates.yaml"), filepath.Join(certificates,
			"cert-manager.io_issuers.yaml"),
	} {
		harness.InstallCRDs(t, harness.ReadManifests(t, file)...)
	}
	for _, name := range []string{"base", "example"} {
		t.Run(name, func(t *testing.T) {
			objects := buildManifests(t, name)
			// objects in a namespace can be applied only when it exists
			harness.Apply(t, ofKind(objects, "Namespace")...)
			out := harness.Kubectl(t, "apply", "--dry-run=server", "--validate=strict", "-k", manifestsDir+name)
			if got := strings.Count(out, "(server dry run)"); got != len(objects) {
				t.Errorf("kubectl applied %d objects, want %d:\n%s", got, len(objects), out)
			}
			checkRights(t, objects)
			checkPods(t, objects)
			checkSelectors(t, objects)
		})
	}
}

// buildManifests returns the objects of a folder.
func buildManifests(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(harness.Kubectl(t, "kustomize",
		manifestsDir+name)), 4096)
	for {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(&o.Object); err != nil {
			break
		}
		objects = append(objects, o)
	}
	return objects
}

func ofKind(objects []*unstructured.Unstructured, kinds ...string) []*unstructured.Unstructured {
	var of []*unstructured.Unstructured
	for _, o := range objects {
		if slices.Contains(kinds, o.GetKind()) {
			of = append(of, o)
		}
	}
	return of
}

// allowedWrites are the permitted rights to write, as verb, group and resources.
var allowedWrites = []string{"proxy cache.crdcache.dev *"}

// checkRights expects roles to grant only read access to named groups, and writes.
func checkRights(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range ofKind(objects, "ClusterRole", "Role") {
		rules, _, _ := unstructured.NestedSlice(o.Object, "rules")
		for _, rule := range rules {
			rule := rule.(map[string]any)
			verbs, _, _ := unstructured.NestedStringSlice(rule, "verbs")
			groups, _, _ := unstructured.NestedStringSlice(rule, "apiGroups")
			resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
			for _, verb := range verbs {
				granted := strings.Join(slices.Concat([]string{verb}, groups, resources), " ")
				if !slices.Contains([]string{"get", "list", "watch"}, verb) && !slices.Contains(allowedWrites, granted) {
					t.Errorf("%s grants the verb %q", o.GetName(), granted)
				}
			}
			if slices.Contains(groups, "*") || slices.Contains(groups, "") {
				t.Errorf("%s grants the groups %q, which include secrets", o.GetName(), groups)
			}
		}
	}
	for _, o := range ofKind(objects, "ClusterRoleBinding", "RoleBinding") {
		if o.GetName() == "crdcached-proxy" {
			continue // for all users
		}
		subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
		name := "crdcached"
		if o.GetName() == "crdcached-objects" {
			name = o.GetName()
		}
		want := []any{map[string]any{"kind": "ServiceAccount", "name": name, "namespace": "crdcached"}}
		if diff := cmp.Diff(want, subjects); diff != "" {
			t.Errorf("%s binds (-want +got):\n%s", o.GetName(), diff)
		}
	}
}

// checkSelectors expects each selector to exist and to match the pods or the Service of the manifests.
func checkSelectors(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	pods, _, _ := unstructured.NestedStringMap(ofKind(objects, "Deployment")[0].Object, "spec", "template",
		"metadata", "labels")
	service := ofKind(objects, "Service")[0].GetLabels()
	matches := []string{"spec", "selector", "matchLabels"}
	for kind, of := range map[string]struct {
		path   []string
		labels map[string]string
	}{
		"Deployment": {matches, pods}, "PodDisruptionBudget": {matches, pods}, "Service": {matches[:2], pods},
		"NetworkPolicy": {[]string{"spec", "podSelector", "matchLabels"}, pods}, "ServiceMonitor": {matches,
			service},
	} {
		for _, o := range ofKind(objects, kind) {
			selector, _, err := unstructured.NestedStringMap(o.Object, of.path...)
			if err != nil || len(selector) == 0 ||
				!labels.SelectorFromSet(selector).Matches(labels.Set(of.labels)) {
				t.Errorf("%s %s selects %v (%v), and the labels are %v", kind, o.GetName(), selector,
					err, of.labels)
			}
		}
	}
	spread, _, _ := unstructured.NestedSlice(ofKind(objects, "Deployment")[0].Object, "spec", "template",
		"spec", "topologySpreadConstraints")
	for _, constraint := range spread {
		selector, _, _ := unstructured.NestedStringMap(constraint.(map[string]any),
			"labelSelector", "matchLabels")
		if len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(labels.Set(pods)) {
			t.Errorf("the topology spread selects pods with %v, and the pods have %v", selector, pods)
		}
	}
}

// checkPods expects the pods to run as the image's user, without privilege escalation and with a read-only
// file system.
func checkPods(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	image, err := os.ReadFile(manifestsDir + "Containerfile")
	must(t, err)
	user := regexp.MustCompile(`(?m)^USER (\d+):`).FindSubmatch(image)
	if user == nil || string(user[1]) == "0" {
		t.Error("the image does not set a user")
		return
	}
	for _, o := range ofKind(objects, "Deployment") {
		pod, _, _ := unstructured.NestedMap(o.Object, "spec", "template", "spec")
		containers, _, _ := unstructured.NestedSlice(pod, "containers")
		for _, want := range []struct {
			of    map[string]any
			path  string
			value string
		}{
			{pod, "securityContext.runAsUser", string(user[1])}, {pod, "securityContext.runAsNonRoot",
				"true"},
			{pod, "securityContext.seccompProfile.type", "RuntimeDefault"},
			{containers[0].(map[string]any), "securityContext.readOnlyRootFilesystem", "true"},
			{containers[0].(map[string]any), "securityContext.allowPrivilegeEscalation", "false"},
			{containers[0].(map[string]any), "securityContext.capabilities.drop", "[ALL]"},
		} {
			if got := stringAt(want.of, want.path); got != want.value {
				t.Errorf("%s is %v, want %v", want.path, got, want.value)
			}
		}
	}
}

func stringAt(o map[string]any, path string) string {
	value, _, _ := unstructured.NestedFieldNoCopy(o, strings.Split(path, ".")...)
	return fmt.Sprint(value)
}
