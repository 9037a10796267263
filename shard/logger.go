package shard

import "k8s.io/klog/v2"

// debugLevel is the log level of electors. They log errors when two replicas want the same shard.
const debugLevel = 4

// debugLogger returns a logger that logs everything at the debug level. The Member logs the relevant errors.
func debugLogger(logger klog.Logger) klog.Logger {
	if logger.GetSink() == nil {
		return logger
	}
	return klog.New(quietSink{logger.GetSink()}).V(debugLevel)
}

// quietSink logs errors at the debug level.
type quietSink struct{ klog.LogSink }

// Init implements klog.LogSink. The embedded sink has been initialized.
func (quietSink) Init(klog.RuntimeInfo) {}

// Error implements klog.LogSink.
func (s quietSink) Error(err error, message string, keysAndValues ...any) {
	if s.Enabled(debugLevel) {
		s.Info(debugLevel, message, append(keysAndValues, "err", err)...)
	}
}

// WithValues implements klog.LogSink.
func (s quietSink) WithValues(keysAndValues ...any) klog.LogSink {
	return quietSink{s.LogSink.WithValues(keysAndValues...)}
}

// WithName implements klog.LogSink.
func (s quietSink) WithName(name string) klog.LogSink { return quietSink{s.LogSink.WithName(name)} }
