package main

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crdcache/crdcache/test/testcluster"
)

// TestConfigChangeRollsDeployment verifies that a change of a ConfigMap changes the pod template of a
// Deployment that mounts it.
func TestConfigChangeRollsDeployment(t *testing.T) {
	cluster, err := testcluster.New(t.Context(), testcluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	manager, err := newManager(cluster.Config(),
		ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }() // ended by cancel
	direct, err := client.New(cluster.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}

	meta := metav1.ObjectMeta{Namespace: "default", Name: "web"}
	config := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"color": "red"}}
	deployment := &appsv1.Deployment{ObjectMeta: meta}
	deployment.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "web"}},
	}}}
	awaitChange := func() {
		t.Helper()
		before := deployment.Spec.Template.Annotations[annotation]
		err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 30*time.Second, true,
			func(ctx context.Context) (bool, error) {
				err := direct.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)
				return deployment.Spec.Template.Annotations[annotation] != before, err
			})
		if err != nil {
			t.Fatalf("await another hash than %q: %v", before, err)
		}
	}
	if err := direct.Create(ctx, deployment); err != nil {
		t.Fatal(err)
	}
	awaitChange()
	if err := direct.Create(ctx, config); err != nil {
		t.Fatal(err)
	}
	awaitChange()
	for _, data := range []map[string]string{{"color": "blue size:1"}, {"color": "blue", "size": "1"}} {
		config.Data = data
		if err := direct.Update(ctx, config); err != nil {
			t.Fatal(err)
		}
		awaitChange()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
