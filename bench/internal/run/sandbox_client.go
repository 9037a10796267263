package run

import (
	"context"
	"encoding/json"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Client returns a REST client for absolute paths, without a rate limit.
func (s *sandbox) Client() (*rest.RESTClient, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return nil, err
	}
	config = dynamic.ConfigFor(config)
	config.GroupVersion = nil
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	return rest.UnversionedRESTClientFor(config)
}

// CaughtUp waits until the API server's watch cache has all written objects. Before that, the server ends
// watch-lists.
func (s *sandbox) CaughtUp(ctx context.Context) error {
	client, err := s.Client()
	if err != nil {
		return err
	}
	answer, err := client.Get().AbsPath(certificatesPath).Param("limit", "1").Do(ctx).Raw()
	if err != nil {
		return err
	}
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return err
	}
	return client.Get().AbsPath(certificatesPath).Param("limit", "1").Param("resourceVersion",
		list.Metadata.ResourceVersion).
		Param("resourceVersionMatch", "NotOlderThan").Do(ctx).Error()
}

// Version returns the version of the API server.
func (s *sandbox) Version(ctx context.Context) (string, error) {
	client, err := s.Client()
	if err != nil {
		return "", err
	}
	answer, err := client.Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return "", err
	}
	var version struct{ GitVersion string }
	err = json.Unmarshal(answer, &version)
	return version.GitVersion, err
}
