package harness

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

func TestCounting(t *testing.T) {
	config, requests := CountRequests(Config(t))
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	client := dynamicClient.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	for range 2 {
		if _, err := client.Namespace("default").List(t.Context(),
			metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w, err := client.Namespace("default").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.Stop()
	const path = "/api/v1/namespaces/default/configmaps"
	if got := requests.Count("GET", path); got != 2 {
		t.Errorf("GET was counted %d times, want 2", got)
	}
	if got := requests.Count("WATCH", path); got != 1 {
		t.Errorf("WATCH was counted %d times, want 1", got)
	}
	if got := requests.All(); len(got) != 2 {
		t.Errorf("all requests are %v, want two kinds", got)
	}
	requests.Reset()
	if got := requests.All(); len(got) != 0 {
		t.Errorf("All() after Reset = %v, want none", got)
	}
}
