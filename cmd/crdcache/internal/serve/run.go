package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/localserver"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/web"
)

// run serves the types of all clusters until it is stopped. With --detach it starts a background process
// instead.
func (o *verb) run(ctx context.Context) error {
	if o.detached {
		return o.detach(ctx)
	}
	if o.kubeconfigPath != "" {
		api, err := newFilesAPI(ctx, o.kubeconfigPath)
		if err != nil {
			return err
		}
		defer api.close()
		o.api = api
	}
	servers, prepareErr := o.prepareServers(ctx)
	defer func() {
		for _, s := range servers {
			s.shutdown()
		}
	}()
	if len(servers) == 0 {
		return prepareErr
	}
	serveCtx, stopServing := context.WithCancelCause(ctx)
	defer stopServing(nil)
	shared, err := o.newSharedServers(servers)
	if err != nil {
		return err
	}
	defer shared.close()
	errs := make([]error, len(servers)+1)
	var running sync.WaitGroup
	if o.kubeconfigPath != "" {
		running.Go(func() { // ended with the caches
			errs[len(servers)] = o.serveAPI(serveCtx, shared.activity)
			stopServing(nil)
		})
	}
	for i, s := range servers {
		running.Go(func() { // the first that ends stops all
			if errs[i] = s.runCluster(serveCtx, stopServing, shared); errs[i] != nil && s.Cluster != "" {
				errs[i] = fmt.Errorf("%s: %w", s.Cluster, errs[i])
			}
			stopServing(nil)
		})
	}
	running.Wait()
	err = errors.Join(errs...)
	switch {
	case errors.Is(context.Cause(serveCtx), errOtherAccount):
		return errOtherAccount
	case err == nil && ctx.Err() != nil:
		return session.ErrInterrupted
	}
	return errors.Join(err, prepareErr)
}

// prepareServers creates the caches of the clusters, in the order of the contexts. The error joins the errors
// of clusters without a cache.
func (o *verb) prepareServers(ctx context.Context) (servers []*cacheServer, err error) {
	err = session.EachCluster(ctx, o.readers, func(ctx context.Context, r *session.Reader) error {
		cluster := *o
		cluster.Reader = r
		r.AllowWatchLists()
		s := &cacheServer{verb: &cluster, started: time.Now()}
		if err := s.openCaches(ctx); err != nil {
			return err
		}
		if err := s.AwaitTurn(ctx); err != nil {
			s.shutdown()
			return err
		}
		servers = append(servers, s)
		return nil
	})
	return servers, err
}

// openCaches prepares the caches. After an error nothing needs to be released.
func (s *cacheServer) openCaches(ctx context.Context) (err error) {
	if s.api != nil {
		s.identity = s.api.identity
	} else if !s.ReadsFiles() {
		if s.identity, s.accountKnown, err = localserver.Identity(ctx, s.Rest); err != nil {
			return err
		}
	}
	if err := s.createConfigWatcher(); err != nil {
		return err
	}
	if s.Cluster == "" { // one of several clusters can be unreachable
		if err := s.resolveTypes(ctx); err != nil {
			return err
		}
	}
	if s.tracker, err = s.Tracker(); err != nil {
		return err
	}
	return s.prepare()
}

// sharedServers are the parts of the process that all clusters share.
type sharedServers struct {
	activity *localserver.ActiveRequests
	page     *localserver.Page    // nil without --web
	metrics  *localserver.Metrics // nil without --metrics-address
	close    func()
	first    *cacheServer
	// sockets maps an identity to the cluster that uses its socket. Two contexts can have one identity.
	sockets map[string]*cacheServer
}

func (o *verb) newSharedServers(servers []*cacheServer) (shared *sharedServers, err error) {
	shared = &sharedServers{activity: localserver.NewActiveRequests(o.idleTimeout), close: func() {},
		first: servers[0], sockets: map[string]*cacheServer{}}
	for _, s := range servers {
		if shared.sockets[s.identity] == nil {
			shared.sockets[s.identity] = s
		}
	}
	if o.web {
		if shared.page, shared.close, err = o.newPage(servers); err != nil {
			return nil, err
		}
	}
	if o.metricsAddrPort.IsValid() {
		if shared.metrics, err = o.metricsServer(servers); err != nil {
			shared.close()
			return nil, err
		}
	}
	return shared, nil
}

// runCluster serves a cluster. The first one also serves the page and the metrics.
func (s *cacheServer) runCluster(ctx context.Context, stopServing context.CancelCauseFunc,
	shared *sharedServers) error {
	followCtx, stopTracking := context.WithCancel(ctx)
	var trackers, reconcilers sync.WaitGroup
	defer trackers.Wait()
	defer stopTracking()
	reconcileCtx, stopReconciling := context.WithCancel(followCtx)
	stop := func() {
		stopReconciling()
		reconcilers.Wait()
		s.shutdown()
	}
	defer stop()
	answer := func(w http.ResponseWriter, r *http.Request) {
		s.Announce(w.Header(), r)
		s.server.ServeHTTP(w, r)
	}
	options := localserver.Options{Dir: localserver.SocketDirFor(s.identity), Info: s.info,
		Resolve: s.resolve, ValidateRequest: s.checkRequest, Handler: http.HandlerFunc(answer),
		ActiveRequests: shared.activity, OnStopped: stop}
	if shared.page != nil {
		options.Page = &localserver.Page{LoginLink: shared.page.LoginLink}
	}
	if s == shared.first {
		options.Page, options.Metrics = shared.page, shared.metrics
	}
	if err := s.factory.Start(followCtx); err != nil {
		return err
	}
	trackers.Go(func() { _ = s.tracker.Run(followCtx) }) // both ended by stopTracking
	trackers.Go(func() { s.Follow(followCtx, s.tracker.Refresh) })
	if s.Rest.ExecProvider != nil {
		trackers.Go(func() { s.watchAccount(followCtx, stopServing) }) // ended by stopTracking
	}
	reconcilers.Go(func() { s.server.Run(reconcileCtx, s.binding, s.tracker) }) // both ended by stop
	if s.configWatcher != nil {
		reconcilers.Go(func() {
			if err := s.configWatcher.Run(reconcileCtx); err != nil {
				s.Warnf("changes of the config files are not noticed: %v", err)
			}
		})
	}
	if owner := shared.sockets[s.identity]; owner != s {
		s.Warnf("commands use the cache of %s, which is the same cluster and user", owner.Cluster)
		<-ctx.Done()
		return nil
	}
	return s.serve(ctx, options)
}

var errOtherAccount = errors.New("the credentials belong to another account now: restart the server")

// AccountInterval is how often the account of the exec plugin is checked. Tests change it.
var AccountInterval = time.Minute

// watchAccount stops the server when renewed credentials belong to another account. Otherwise the cache would
// mix the objects of both accounts.
func (s *cacheServer) watchAccount(ctx context.Context, stopServing context.CancelCauseFunc) {
	account := "" // until it is known
	if s.accountKnown {
		account = s.identity
	}
	ticker := time.NewTicker(AccountInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		identity, isKnown, err := localserver.Identity(ctx, s.Rest)
		switch {
		case err != nil || !isKnown || identity == account:
		case account != "":
			stopServing(errOtherAccount)
			return
		default:
			account = identity
			s.Warnf("commands do not use the cache, because the API server did not report the user at the start: restart the server")
		}
	}
}

// serve listens and prints the addresses.
func (o *verb) serve(ctx context.Context, options localserver.Options) error {
	errOut := o.flags.Streams(o.streams).ErrOut // without the prefix of a cluster
	printLink := func() {
		if options.Page != nil && options.Page.Listener != nil {
			fmt.Fprintf(errOut, "open %s (one-time link for one browser)\n", options.Page.LoginLink())
		}
	}
	if o.ReadsFiles() {
		return o.serveFiles(ctx, options, printLink)
	}
	return localserver.Serve(ctx, options, func() {
		fmt.Fprintf(o.ErrOut, "serving the cache of %s; commands use it from now on\n", o.Rest.Host)
		if options.Metrics != nil {
			fmt.Fprintf(errOut, "metrics: http://%s/metrics\n", options.Metrics.Listener.Addr())
		}
		printLink()
	})
}

// serveFiles serves the page, and the commands with the kubeconfig. If there is no socket, the commands use
// the read API.
func (o *verb) serveFiles(ctx context.Context, options localserver.Options, onListening func()) error {
	if o.api != nil {
		isListening := false
		err := localserver.Serve(ctx, options, func() {
			isListening = true
			onListening()
		})
		if isListening || err == nil {
			return err
		}
		o.Warnf("commands do not use the caches: %v", err)
	}
	return localserver.ServePage(ctx, options.Page, options.ActiveRequests, onListening)
}

// resolveTypes returns an error for misspelled types before anything is cached. Missing types of a config or
// a pattern are warnings, because they can be installed later.
func (s *cacheServer) resolveTypes(ctx context.Context) error {
	limitedCtx, cancel := s.WithTimeout(ctx)
	defer cancel()
	resources, unresolved := s.resolveNames(limitedCtx)
	if err := s.Config.CheckNames(resources); err != nil {
		return err
	}
	s.initialTypes, s.reportedAbsent = map[schema.GroupVersionResource]bool{}, map[string]bool{}
	for _, r := range resources {
		s.initialTypes[r.GVR] = true
	}
	hasPatterns := false
	for _, err := range session.SplitJoined(unresolved) {
		noMatch, isAbsent := errors.AsType[*discovery.NoMatchError](err)
		isPattern := isAbsent && strings.Contains(noMatch.Name, "*")
		switch {
		case errors.As(err, new(*session.UnknownGroupsError)):
			s.Warnf("%v", err)
			hasPatterns = true
			continue
		case !isAbsent && s.ReadsFiles() &&
			len(resources) > 0: // the readable files are shown
			fmt.Fprintf(s.ErrOut, "error: %s\n", print.OneSafeLine(err.Error()))
			continue
		case !isAbsent || !isPattern && !s.hasConfigTypes:
			return unresolved
		}
		hasPatterns = hasPatterns || isPattern
		s.reportedAbsent[noMatch.Name] = true
		s.Warnf("cached when it is installed: %v", err)
	}
	if len(resources) == 0 && !hasPatterns {
		return unresolved
	}
	return nil
}

// resolveNames resolves the type names. Types that cannot be watched are polled, but only if they are named:
// a pattern could select many. A note names the types that patterns leave out.
func (s *cacheServer) resolveNames(ctx context.Context) (resources []discovery.Resource, err error) {
	isPattern := func(name string) bool { return strings.Contains(name, "*") }
	names := slices.DeleteFunc(slices.Clone(s.TypeNames()), isPattern)
	patterns := slices.DeleteFunc(slices.Clone(s.TypeNames()),
		func(name string) bool { return slices.Contains(names, name) })
	if len(names) > 0 {
		resources, err = s.Resolve(ctx, names, "list")
	}
	if len(patterns) == 0 {
		return resources, err
	}
	var polled []string
	matched, patternErr := s.Resolve(ctx, patterns, "list")
	for _, r := range matched {
		isNamed := slices.ContainsFunc(resources,
			func(named discovery.Resource) bool { return named.GVR == r.GVR })
		switch {
		case isNamed:
		case r.Watchable():
			resources = append(resources, r)
		default:
			polled = append(polled, r.GVR.GroupResource().String())
		}
	}
	text := "types that cannot be watched are only cached if they are named: " + session.Abbreviate(polled)
	switch {
	case len(polled) == 0:
	case len(resources) == 0:
		err = errors.Join(err, errors.New(text))
	default:
		s.notef("%s", text)
	}
	return resources, errors.Join(err, patternErr)
}

// detach starts a background process and waits until its server answers.
func (o *verb) detach(ctx context.Context) error {
	if err := o.ContextErr(); err != nil {
		return err
	}
	ctx, cancel := o.WithTimeout(ctx)
	defer cancel()
	program, err := os.Executable()
	if err != nil {
		return err
	}
	info, err := localserver.Detach(ctx, o.Rest, program, withoutDetach(os.Args), o.ErrOut)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: the server did not answer within %v (--timeout) and was stopped",
			session.ErrNotSynced, o.Timeout)
	case err != nil:
		return err
	}
	fmt.Fprintf(o.ErrOut, "process %d serves; its log is %s\n", info.PID,
		localserver.SocketDirFor(info.Identity).Log())
	return nil
}

// withoutDetach returns a command line without --detach.
func withoutDetach(args []string) []string {
	flagsEnd := slices.Index(args, "--")
	if flagsEnd < 0 {
		flagsEnd = len(args)
	}
	flags := slices.DeleteFunc(slices.Clone(args[:flagsEnd]), func(arg string) bool {
		return arg == "--detach" || strings.HasPrefix(arg, "--detach=")
	})
	return append(flags, args[flagsEnd:]...)
}

// newPage listens for the web page. It returns the page of all clusters and a function that closes it. The
// shutdown of a cluster releases the informers of the page.
func (o *verb) newPage(servers []*cacheServer) (*localserver.Page, func(), error) {
	options := web.Options{ShowSecrets: o.showSecrets,
		Clusters: naming.Map(servers[1:], (*cacheServer).pageSource)}
	handler, err := web.NewHandler(servers[0].pageSource(), options)
	if err != nil {
		return nil, nil, err
	}
	listener, err := net.Listen("tcp", o.webAddrPort.String())
	if err != nil {
		handler.Close()
		return nil, nil, fmt.Errorf("listen for the web page: %w", err)
	}
	link := func() string { return "http://" + listener.Addr().String() + handler.Login() }
	return &localserver.Page{Listener: listener, Handler: handler, LoginLink: link}, func() {
		listener.Close()
		handler.Close()
	}, nil
}

func (s *cacheServer) pageSource() web.Source {
	title, notice := cmp.Or(s.Context, s.Rest.Host), ""
	if s.ReadsFiles() {
		title, notice = s.FilesTitle(), s.FilesNotice()
	}
	return web.Source{
		Title: title, Factory: s.factory, Definition: web.Definitions(s.crdInformer), Binding: s.binding,
		Notice: func() string {
			if s.configWatcher != nil && s.configWatcher.Status().Err != nil {
				return s.configStatus()
			}
			return notice
		},
	}
}
