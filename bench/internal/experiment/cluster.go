package experiment

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crdcache/crdcache/bench/internal/subject"
)

// certificates is the measured type.
var certificates = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1",
	Resource: "certificates"}

const certificateKind = "Certificate"

// config returns the configuration of a child's clients, without a client-side rate limit.
func config(task Task) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", task.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	return config, nil
}

func newCache(task Task, handler subject.Handler, seen func(string)) (subject.Cache, error) {
	config, err := config(task)
	if err != nil {
		return nil, err
	}
	return subject.New(task.Subject, subject.Options{
		Config: config, Type: certificates, Kind: certificateKind, Handler: handler, Seen: seen,
	})
}
