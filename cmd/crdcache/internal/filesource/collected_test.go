package filesource

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/discovery/crd"
)

// TestCollected verifies which types the sources have collected. Reads of others fail.
func TestCollected(t *testing.T) {
	type files = map[string]string
	const definition = "resources/customresourcedefinitions.apiextensions.k8s.io/v1-preferredversion/cluster/w.yaml"
	const errorsFile = "cluster-resources/custom-resource-definitions-errors.json"
	const emptyList = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinitionList\nitems: []\n"
	bundle, plain, object := files{definition: widgetCRD}, files{"crd.yaml": widgetCRD}, files{"a.yaml": widget("a", "red")}
	full := files{definition: widgetCRD, "resources/widgets.example.com/namespaces/web/a.yaml": widget("a", "red")}
	list := files{"list.yaml": "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(widget("a", "red"), "\n", "\n  ") + "\n"}
	widgetType, apiServices := widgets.WithVersion("v1"), schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	for name, tt := range map[string]struct {
		gvr     schema.GroupVersionResource
		want    string
		sources []files
	}{
		"a bundle with a definition":         {widgetType, "not collected", []files{bundle}},
		"and an object of another source":    {widgetType, "1 of more", []files{bundle, object}},
		"and a list of another source":       {widgetType, "1", []files{bundle, list}},
		"and a definition of another source": {widgetType, "not collected", []files{bundle, plain}},
		"and another bundle":                 {widgetType, "1 of more", []files{full, bundle}},
		"a bundle with objects":              {widgetType, "1", []files{full}},
		"a definition":                       {widgetType, "0", []files{plain}},
		"no trace of definitions":            {crd.GVR, "no type", []files{object}},
		"an empty list of definitions":       {crd.GVR, "0", []files{{"a.yaml": emptyList}}},
		"unreadable definitions":             {crd.GVR, "not collected", []files{{errorsFile: `["denied"]`}}},
		"definitions":                        {crd.GVR, "1", []files{bundle}},
		"no trace of APIServices":            {apiServices, "no type", []files{bundle}},
	} {
		t.Run(name, func(t *testing.T) {
			var paths []string
			for _, source := range tt.sources {
				paths = append(paths, writeTree(t, source))
			}
			s := openSource(t, Options{Paths: paths})
			objects, err := dynamic.NewForConfigOrDie(s.Config()).Resource(tt.gvr).List(t.Context(), metav1.ListOptions{})
			got := fmt.Sprint(err)
			switch {
			case apierrors.IsNotFound(err):
				got = "no type"
			case apierrors.ReasonForError(err) == ReasonNotCollected:
				got = "not collected"
			case err == nil:
				if got = fmt.Sprint(len(objects.Items)); s.Incomplete(tt.gvr.GroupResource()) != "" {
					got += " of more"
				}
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
