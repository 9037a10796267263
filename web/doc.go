// Package web is a page that shows what a factory keeps: its types and how they are, their objects, and what
// changes. It is for the person in front of the machine, in a browser, and needs nothing but that: all files
// are embedded, none is built, and nothing is loaded from elsewhere.
//
// # Usage
//
//	handler, err := web.NewHandler(web.Source{Factory: factory, Binding: binding}, web.Options{})
//	defer handler.Close()
//	listener, err := net.Listen("tcp", "127.0.0.1:0")
//	fmt.Println("http://" + listener.Addr().String() + handler.Login())
//	err = (&http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}).Serve(listener)
//
// docs/web.md describes the page.
//
// # Security
//
// Nothing is served without a cookie, which [Handler.Login] gives to one browser, once, for each link. The
// Host of a request has to be a loopback address, or one of Options.Hosts, and its Origin, where it has one,
// the page itself. The page only reads. A strict Content-Security-Policy keeps what objects say from being
// anything but text. The values of Secrets are replaced by marks before anything else sees them, unless
// Options.ShowSecrets is set, and no query looks into them. All else that the factory holds is shown: whoever
// opens the page reads with the rights of the process.
//
// Requests that cost more than a look run a few at a time, for ten seconds at most; streams are limited in
// number, each keeps a bounded queue, and one that does not take what it is sent for ten seconds is cut.
//
// # Concurrency
//
// A Handler is safe for concurrent use. It has one goroutine, which looks at the figures of the types every
// two seconds until Close.
package web
