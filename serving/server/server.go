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

// Server serves the cache of a cluster. Create it with New.
type Server struct {
	cache      *typeCache
	generic    *genericserver.GenericAPIServer
	config     *genericserver.Config
	page       *page // nil if disabled
	endWatches context.CancelFunc
}

// New returns a server that listens, and answers after Run is called. It logs to the logger of ctx. New fails
// if the options are invalid, or if the kubeconfig, the certificates or the client CAs cannot be read.
func New(ctx context.Context, options *Options) (*Server, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	client, err := options.clientConfig()
	if err != nil {
		return nil, err
	}
	servingCtx, end := context.WithCancel(context.WithoutCancel(ctx)) // ended by the generic server
	s := &Server{endWatches: end}
	if s.cache, err = newTypeCache(servingCtx, client, &options.Config); err != nil {
		return nil, err
	}
	limits := newLimits(options.Config.Limits, options.Config.Watches.WriteTimeout.Duration)
	if s.config, err = options.genericConfig(ctx, limits); err != nil {
		return nil, err
	}
	watches := options.Config.Watches
	router := &router{
		cache: s.cache, limits: limits,
		reviews: &reviewHandler{cache: s.cache, authorizer: s.config.Authorization.Authorizer,
			codecs: serializer.NewCodecFactory(newScheme())},
		watches: &watchLimits{min: watches.Min.Duration, max: watches.Max.Duration, servingCtx: servingCtx},
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
		router.genericHandler = generic
		return rejectLongURLs(stripAggregatedPrefix(explainRejections(dropBody(
			genericserver.DefaultBuildHandlerChain(router, config)))))
	}
	s.config.LongRunningFunc = isLongRunning
	s.config.AddReadyzChecks(s.cache.readyzCheck())
	if s.generic, err = s.config.Complete(nil).New("crdcached",
		genericserver.NewEmptyDelegate()); err != nil {
		return nil, err
	}
	metricsHandler, err := s.cache.metricsHandler(router.limits)
	if err != nil {
		return nil, err
	}
	s.generic.Handler.NonGoRestfulMux.Handle("/metrics", metricsHandler)
	s.generic.Handler.NonGoRestfulMux.Handle(objectMetricsPath, s.cache.objectMetricsHandler())
	return s, s.generic.AddPreShutdownHook("end-watches", func() error { end(); return nil })
}

// Address returns the address that the server listens on.
func (s *Server) Address() net.Addr { return s.config.SecureServing.Listener.Addr() }

// Run serves until ctx ends. Then it waits for running requests. It can be called once.
func (s *Server) Run(ctx context.Context) error {
	defer s.endWatches()
	cacheCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	cacheEnded := make(chan error, 1)
	go func() { cacheEnded <- s.cache.run(cacheCtx) }() // ended by stop
	err := s.generic.PrepareRun().RunWithContext(ctx)
	if s.page != nil {
		s.page.close()
	}
	stop()
	return errors.Join(err, <-cacheEnded)
}

func (o *Options) genericConfig(ctx context.Context, limits *limits) (*genericserver.Config, error) {
	config := genericserver.NewConfig(serializer.NewCodecFactory(newScheme()))
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.RequestTimeout, config.ShutdownDelayDuration = o.RequestTimeout, o.ShutdownDelay
	config.MaxRequestsInFlight, config.MaxMutatingRequestsInFlight = o.MaxRequestsInFlight,
		o.MaxRequestsInFlight
	config.EnableIndex, config.EnableDiscovery, config.EnableProfiling, config.EnableMetrics = false,
		false, false, false
	config.SkipOpenAPIInstallation = true
	config.RequestInfoResolver = queryResolver{genericserver.NewRequestInfoResolver(config)}
	o.setClusterDefaults()
	if err := o.listen(); err != nil {
		return nil, err
	}
	if err := o.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil,
		[]net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return nil, fmt.Errorf("create a certificate: %w", err)
	}
	if err := o.SecureServing.ApplyToConfig(config); err != nil {
		return nil, fmt.Errorf("serve with %s: %w", o.describeCertificates(), err)
	}
	config.SecureServing.Listener = limitConnections(config.SecureServing.Listener, o.Config.Limits,
		limits.rejected.WithLabelValues("connectionsPerAddress"))
	if err := o.applyAuthentication(ctx, config); err != nil {
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

// reviewAuthorizer returns an authorizer with its own client and without a cache.
func (o *Options) reviewAuthorizer() (authorizer.Authorizer, error) {
	options, info := *o.Authorization, genericserver.AuthorizationInfo{}
	options.AllowCacheTTL, options.DenyCacheTTL = 0, 0
	if err := options.ApplyTo(&info); err != nil {
		return nil, fmt.Errorf("authorization: %w", err)
	}
	return info.Authorizer, nil
}

func (o *Options) applyAuthentication(ctx context.Context, config *genericserver.Config) error {
	options := *o.Authentication
	clientCAs, err := newClientCAs(ctx, &options)
	if err == nil {
		err = options.ApplyTo(&config.Authentication, config.SecureServing, nil)
	}
	if err != nil {
		return err
	}
	config.Authentication.Authenticator = reportingAuthenticator{config.Authentication.Authenticator}
	config.Authentication.APIAudiences = o.Config.TokenAudiences
	config.SecureServing.ClientCA = clientCAs.deferredProvider(config.SecureServing.ClientCA)
	config.AddReadyzChecks(clientCAs.readyzCheck())
	return nil
}

func (o *Options) describeCertificates() string {
	var files []string
	if pair := o.SecureServing.ServerCert.CertKey; pair.CertFile != "" {
		files = append(files, fmt.Sprintf("--tls-cert-file %s and --tls-private-key-file %s",
			pair.CertFile, pair.KeyFile))
	}
	for _, pair := range o.SecureServing.SNICertKeys {
		files = append(files, fmt.Sprintf("--tls-sni-cert-key %s,%s", pair.CertFile, pair.KeyFile))
	}
	return cmp.Or(strings.Join(files, ", "), "a self-signed certificate")
}

// listen listens on a free port if no port is set. The port is logged.
func (o *Options) listen() (err error) {
	if o.SecureServing.BindPort == 0 && o.SecureServing.Listener == nil {
		o.SecureServing.Listener, err = net.Listen("tcp",
			net.JoinHostPort(o.SecureServing.BindAddress.String(), "0"))
	}
	return err
}

// setClusterDefaults sets the cached cluster as the default for authentication and authorization.
func (o *Options) setClusterDefaults() {
	o.Authentication.RemoteKubeConfigFile = cmp.Or(o.Authentication.RemoteKubeConfigFile, o.Kubeconfig)
	if o.Authorization.RemoteKubeConfigFile == "" {
		o.Authorization.RemoteKubeConfigFile = o.Kubeconfig
	}
}

// newScheme returns a scheme with the types that the generic server writes: errors, discovery and reviews.
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
