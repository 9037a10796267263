package decode

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
)

// podJSON is a pod as an API server sends it.
const podJSON = `{"apiVersion":"v1","kind":"Pod","metadata":{"creationTimestamp":"2026-11-22T07:00:00Z","generateName":"web-5d4f8c7b9-","labels":{"app":"web","pod-template-hash":"5d4f8c7b9"},"managedFields":[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"0f1b3c1e\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}},"f:resources":{".":{},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}}}},"f:dnsPolicy":{},"f:restartPolicy":{}}},"manager":"kube-controller-manager","operation":"Update","time":"2026-11-22T07:00:00Z"}],"name":"web-5d4f8c7b9-x2x8z","namespace":"production","ownerReferences":[{"apiVersion":"apps/v1","blockOwnerDeletion":true,"controller":true,"kind":"ReplicaSet","name":"web-5d4f8c7b9","uid":"0f1b3c1e-7f8e-4c1a-9a57-2d1c0f5f0c11"}],"resourceVersion":"123456","uid":"3b5f0ad0-6a4f-4a45-9d59-6b8c9f7b9a10"},"spec":{"containers":[{"env":[{"name":"MODE","value":"production"}],"image":"registry.example.com/web:1.2.3","imagePullPolicy":"IfNotPresent","name":"web","ports":[{"containerPort":8080,"protocol":"TCP"}],"resources":{"requests":{"cpu":"100m","memory":"128Mi"}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","volumeMounts":[{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"kube-api-access-abcde","readOnly":true}]}],"dnsPolicy":"ClusterFirst","nodeName":"node-17","restartPolicy":"Always","schedulerName":"default-scheduler","serviceAccountName":"default","terminationGracePeriodSeconds":30,"tolerations":[{"effect":"NoExecute","key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":300}]},"status":{"conditions":[{"lastProbeTime":null,"lastTransitionTime":"2026-11-22T07:00:01Z","status":"True","type":"Ready"},{"lastProbeTime":null,"lastTransitionTime":"2026-11-22T07:00:00Z","status":"True","type":"PodScheduled"}],"hostIP":"10.0.0.17","phase":"Running","podIP":"10.1.2.3","qosClass":"Burstable","startTime":"2026-11-22T07:00:00Z"}}`

func TestPodUsesNoFallback(t *testing.T) {
	compare[corev1.Pod](t, podJSON)
	compare[metav1.PartialObjectMetadata](t, podJSON)
	doc := document{data: []byte(podJSON)}
	var pod corev1.Pod
	if end := DecoderFor(reflect.TypeFor[corev1.Pod]()).codec(&doc, 0,
		reflect.ValueOf(&pod).UnsafePointer()); end != len(podJSON) {
		t.Errorf("the codec stopped at %d, so a typical pod needs the general decoder", end)
	}
}

// BenchmarkDecode compares this package, sigs.k8s.io/json, and copying a decoded object.
func BenchmarkDecode(b *testing.B) {
	data := []byte(podJSON)
	var pod corev1.Pod
	decoder := DecoderFor(reflect.TypeFor[corev1.Pod]())
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			pod = corev1.Pod{}
			if err := decoder.Decode(data, reflect.ValueOf(&pod)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			pod = corev1.Pod{}
			if err := json.UnmarshalCaseSensitivePreserveInts(data, &pod); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("copy", func(b *testing.B) {
		b.ReportAllocs()
		var out corev1.Pod
		for b.Loop() {
			pod.DeepCopyInto(&out)
		}
	})
}
