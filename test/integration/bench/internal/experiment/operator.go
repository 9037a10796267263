//go:build !nextkubernetes

package experiment

import (
	"net/http"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/crdcache/crdcache/adapters/controllerruntime"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
)

// owned is the Go type of an owned kind. Kinds differ by their type argument.
type owned[kind any] struct{ certmanagerv1.Certificate }

type (
	first  struct{}
	second struct{}
)

func (o *owned[kind]) DeepCopyObject() runtime.Object { return &owned[kind]{*o.DeepCopy()} }

type ownedList[kind any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []owned[kind] `json:"items"`
}

func (l *ownedList[kind]) DeepCopyObject() runtime.Object {
	next := &ownedList[kind]{TypeMeta: l.TypeMeta, ListMeta: l.ListMeta}
	for k := range l.Items {
		next.Items = append(next.Items, owned[kind]{*l.Items[k].DeepCopy()})
	}
	return next
}

// servedTypes are the types of a synthetic server, which has no discovery.
type servedTypes []Type

func (types servedTypes) Subscribe(l typesource.Listener) (stop func()) {
	for _, t := range types {
		l.SetType(typesource.Type{GroupResource: t.GVR.GroupResource(), Kind: t.Kind, Namespaced: true,
			Versions: []string{t.GVR.Version}, Established: true})
	}
	l.SetComplete()
	return func() {}
}

func (types servedTypes) mapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return mapperOf(types...), nil
}

// setOperatorOptions sets the types of an operator's manager.
func setOperatorOptions(task Task, options *ctrl.Options) {
	gv := certificates.GroupVersion()
	options.Scheme.AddKnownTypeWithName(gv.WithKind(OwnedKinds[0]), &owned[first]{})
	options.Scheme.AddKnownTypeWithName(gv.WithKind(OwnedKinds[0]+"List"), &ownedList[first]{})
	options.Scheme.AddKnownTypeWithName(gv.WithKind(OwnedKinds[1]), &owned[second]{})
	options.Scheme.AddKnownTypeWithName(gv.WithKind(OwnedKinds[1]+"List"), &ownedList[second]{})
	all := servedTypes{{certificates, certificateKind}}
	for _, kind := range OwnedKinds {
		all = append(all, Type{gv.WithResource(ResourceOf(kind)), kind})
	}
	options.MapperProvider = all.mapper
	if task.Subject == CrdcacheManager {
		options.NewCache = controllerruntime.NewCacheFunc(controllerruntime.Options{Types: all})
	}
}

// updateRecorder is a predicate that records the updates of an operator's objects, and accepts all events.
type updateRecorder struct {
	predicate.Funcs
	times *eventTimes
}

func (updateRecorder) ReadsOnlyMetadata() {}

func (r updateRecorder) Update(e event.UpdateEvent) bool {
	r.times.record(e.ObjectNew.GetNamespace() + "/" + e.ObjectNew.GetName())
	return true
}
