package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
)

// Server serves a cache of a cluster. It is made by New.
type Server struct {
	cache   *cache
	generic *genericserver.GenericAPIServer
	config  *genericserver.Config
	page    *page // nil for none
	// endWatches ends those that are served.
	endWatches context.CancelFunc
}

// New returns a server that listens, and answers once it is run. The error says what of the options is wrong,
// or cannot be had: the kubeconfig, the certificates, the client authorities of the cluster.
func New(options *Options) (*Server, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	client, err := options.clientConfig()
	if err != nil {
		return nil, err
	}
	serving, end := context.WithCancel(context.Background()) // ended by the shutdown of the generic server
	s := &Server{endWatches: end}
	if s.cache, err = newCache(serving, client, &options.Config); err != nil {
		return nil, err
	}
	limits := newLimits(options.Config.Limits, options.Config.Watches.WriteTimeout.Duration)
	if s.config, err = options.genericConfig(limits); err != nil {
		return nil, err
	}
	watches := options.Config.Watches
	router := &router{
		cache: s.cache, limits: limits,
		reviews: &reviews{cache: s.cache, authorizer: s.config.Authorization.Authorizer,
			codecs: serializer.NewCodecFactory(newScheme())},
		watches: &watchTimes{min: watches.Min.Duration, max: watches.Max.Duration, serving: serving},
	}
	if options.Config.Page.Enabled {
		reviews, err := options.reviewAuthorizer()
		if err != nil {
			return nil, err
		}
		if s.page, err = newPage(s.cache, options.Config.Page, router.watches,
			s.config.Authorization.Authorizer, reviews); err != nil {
			return nil, err
		}
		router.page = s.page
	}
	s.config.BuildHandlerChainFunc = func(generic http.Handler, config *genericserver.Config) http.Handler {
		router.generic = generic
		return refuseLong(explainRefusals(bodyless(genericserver.DefaultBuildHandlerChain(router, config))))
	}
	s.config.LongRunningFunc = isLong
	s.config.AddReadyzChecks(s.cache.readiness())
	if s.generic, err = s.config.Complete(nil).New("crdcached",
		genericserver.NewEmptyDelegate()); err != nil {
		return nil, err
	}
	exposed, err := s.cache.metricsHandler(router.limits)
	if err != nil {
		return nil, err
	}
	s.generic.Handler.NonGoRestfulMux.Handle("/metrics", exposed)
	return s, s.generic.AddPreShutdownHook("end-watches", func() error { end(); return nil })
}

// Address is where the server listens.
func (s *Server) Address() net.Addr { return s.config.SecureServing.Listener.Addr() }

// Run serves until ctx ends, and then until what is under way has been answered. It may be called once.
func (s *Server) Run(ctx context.Context) error {
	defer s.endWatches()
	caching, stop := context.WithCancel(context.WithoutCancel(ctx))
	cached := make(chan error, 1)
	go func() { cached <- s.cache.run(caching) }() // ended by stop
	err := s.generic.PrepareRun().RunWithContext(ctx)
	if s.page != nil {
		s.page.close()
	}
	stop()
	return errors.Join(err, <-cached)
}

// genericConfig is that of the generic server, as far as the options say it.
func (o *Options) genericConfig(limits *limits) (*genericserver.Config, error) {
	config := genericserver.NewConfig(serializer.NewCodecFactory(newScheme()))
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.RequestTimeout, config.ShutdownDelayDuration = o.RequestTimeout, o.ShutdownDelay
	config.MaxRequestsInFlight, config.MaxMutatingRequestsInFlight = o.MaxRequestsInFlight,
		o.MaxRequestsInFlight
	config.EnableIndex, config.EnableDiscovery, config.EnableProfiling, config.EnableMetrics = false,
		false, false, false
	config.SkipOpenAPIInstallation = true
	config.RequestInfoResolver = queryResolver{genericserver.NewRequestInfoResolver(config)}
	o.delegate()
	if err := o.listen(); err != nil {
		return nil, err
	}
	if err := o.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil,
		[]net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	if err := o.SecureServing.ApplyToConfig(config); err != nil {
		return nil, fmt.Errorf("serving with %s: %w", o.certificates(), err)
	}
	config.SecureServing.Listener = boundConnections(config.SecureServing.Listener, o.Config.Limits,
		limits.refused.WithLabelValues("connectionsPerAddress"))
	if err := o.authenticate(config); err != nil {
		return nil, fmt.Errorf("authentication: %w", err)
	}
	if err := o.Authorization.ApplyTo(&config.Authorization); err != nil {
		return nil, fmt.Errorf("authorization: %w", err)
	}
	config.Authorization.Authorizer = reportingAuthorizer{config.Authorization.Authorizer}
	if err := o.Audit.ApplyTo(config); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return config, nil
}

// reviewAuthorizer returns an authorizer with a client of its own and without a memory.
func (o *Options) reviewAuthorizer() (authorizer.Authorizer, error) {
	options, info := *o.Authorization, genericserver.AuthorizationInfo{}
	options.AllowCacheTTL, options.DenyCacheTTL = 0, 0
	if err := options.ApplyTo(&info); err != nil {
		return nil, fmt.Errorf("authorization: %w", err)
	}
	return info.Authorizer, nil
}

// authenticate says who is believed to be whom.
func (o *Options) authenticate(config *genericserver.Config) error {
	options := *o.Authentication
	users, err := userAuthorities(&options)
	if err == nil {
		err = options.ApplyTo(&config.Authentication, config.SecureServing, nil)
	}
	if err != nil {
		return err
	}
	config.Authentication.Authenticator = reportingAuthenticator{config.Authentication.Authenticator}
	config.Authentication.APIAudiences = o.Config.TokenAudiences
	config.SecureServing.ClientCA = users.whole(config.SecureServing.ClientCA)
	config.AddReadyzChecks(users.readiness())
	return nil
}

// certificates names the files that the server is to show.
func (o *Options) certificates() string {
	var files []string
	if pair := o.SecureServing.ServerCert.CertKey; pair.CertFile != "" {
		files = append(files, fmt.Sprintf("--tls-cert-file %s and --tls-private-key-file %s",
			pair.CertFile, pair.KeyFile))
	}
	for _, pair := range o.SecureServing.SNICertKeys {
		files = append(files, fmt.Sprintf("--tls-sni-cert-key %s,%s", pair.CertFile, pair.KeyFile))
	}
	return cmp.Or(strings.Join(files, ", "), "a certificate of its own")
}

// listen takes a free port where none is named. The log says which.
func (o *Options) listen() (err error) {
	if o.SecureServing.BindPort == 0 && o.SecureServing.Listener == nil {
		o.SecureServing.Listener, err = net.Listen("tcp",
			net.JoinHostPort(o.SecureServing.BindAddress.String(), "0"))
	}
	return err
}

// delegate has the cluster that is kept be asked for users and rights, where no other is named.
func (o *Options) delegate() {
	if o.Authentication.RemoteKubeConfigFile == "" {
		o.Authentication.RemoteKubeConfigFile = o.Kubeconfig
	}
	if o.Authorization.RemoteKubeConfigFile == "" {
		o.Authorization.RemoteKubeConfigFile = o.Kubeconfig
	}
}

// newScheme returns the types that the generic server writes: errors, discovery and reviews.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	version := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, version)
	utilruntime.Must(authenticationv1.AddToScheme(scheme))
	utilruntime.Must(authorizationv1.AddToScheme(scheme))
	scheme.AddUnversionedTypes(version, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{},
		&metav1.APIGroup{}, &metav1.APIResourceList{})
	return scheme
}
