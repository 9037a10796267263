package controllerruntime_test

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Color string `json:"color"`
	} `json:"spec"`
}

func (w *widget) DeepCopyObject() runtime.Object {
	out := *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

type widgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []widget `json:"items"`
}

func (l *widgetList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = make([]widget, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*widget)
	}
	return &out
}

type widgets struct{ schema.GroupVersion }

func (w widgets) scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(w.WithKind("Widget"), &widget{})
	scheme.AddKnownTypeWithName(w.WithKind("WidgetList"), &widgetList{})
	metav1.AddToGroupVersion(scheme, w.GroupVersion)
	return scheme
}

func (w widgets) new(namespace, name, color string) *unstructured.Unstructured {
	o := w.unstructured().(*unstructured.Unstructured)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.Object["spec"] = map[string]any{"color": color}
	return o
}

func (w widgets) unstructured() client.Object {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(w.WithKind("Widget"))
	return o
}

func (w widgets) metadata() client.Object {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(w.WithKind("Widget"))
	return o
}

func (w widgets) typed() client.Object { return &widget{} }
