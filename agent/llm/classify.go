package llm

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
)

// Classify says what can be done about err. An Error's own class counts first,
// then the caller's context, then the transport, and only then the text.
func Classify(err error) Class {
	if err == nil {
		return ClassOther
	}
	if e, ok := errors.AsType[*Error](err); ok && e.Class != "" {
		return e.Class
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return ClassAborted
	}
	if class := transportClass(err); class != ClassOther {
		return class
	}
	return textClass(err.Error())
}

// ClassifyStatus says what an HTTP status and the text that came with it mean.
// The status decides; the text only tells apart what one status is used for.
// Status 0 stands for an error object inside a stream, where only text is known.
func ClassifyStatus(status int, text string) Class {
	switch {
	case status == 0:
		return textClass(text)
	case status == 402:
		return ClassQuota
	case status == 429:
		if hasAny(text, quotaTexts()) {
			return ClassQuota
		}
		return ClassRetryable
	case status == 401, status == 403:
		if hasAny(text, quotaTexts()) {
			return ClassQuota
		}
		return ClassAuth
	case status == 413:
		return ClassOverflow
	case status == 408, status == 409, status == 425, status == 498: // 498: Groq has no capacity
		return ClassRetryable
	case status == 501, status == 505:
		return ClassInvalid
	case hasAny(text, []string{"rate limit", "too many requests", "throttling"}):
		return ClassRetryable // also where it counts tokens
	case hasAny(text, overflowTexts()):
		return ClassOverflow
	case status >= 500:
		return ClassRetryable
	case hasAny(text, quotaTexts()):
		return ClassQuota
	}
	return ClassInvalid
}

func transportClass(err error) Class {
	var (
		unknownCA x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		network   net.Error
		op        *net.OpError
	)
	switch {
	case errors.As(err, &unknownCA), errors.As(err, &hostname), errors.As(err, &invalid), errors.As(err, &record):
		return ClassInvalid
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EPIPE):
		return ClassRetryable
	case errors.As(err, &op):
		return ClassRetryable
	case errors.As(err, &network) && network.Timeout():
		return ClassRetryable
	}
	return ClassOther
}

func textClass(text string) Class {
	switch {
	case hasAny(text, quotaTexts()):
		return ClassQuota
	case hasAny(text, retryTexts()):
		return ClassRetryable
	case hasAny(text, overflowTexts()):
		return ClassOverflow
	case hasAny(text, []string{"invalid api key", "invalid_api_key", "incorrect api key", "unauthorized", "authentication_error"}):
		return ClassAuth
	case hasAny(text, []string{"invalid_request_error", "invalid request"}):
		return ClassInvalid
	}
	return ClassOther
}

// The texts below are what providers are known to say; all in lower case.

func quotaTexts() []string {
	return []string{
		"insufficient_quota", "insufficient quota", "exceeded your current quota", "billing_hard_limit",
		"insufficient balance", "insufficient credits", "credit balance is too low", "payment required", "usage limit reached",
		"out of budget", "available balance", "monthly usage limit", "usagelimiterror", "usage_limit_reached", "monthly quota", "billing",
	}
}

func retryTexts() []string {
	return []string{
		"overloaded", "rate limit", "rate_limit", "too many requests", "please wait before trying again", "server_error",
		"internal server error", "internal_server_error", "service unavailable", "service_unavailable", "bad gateway",
		"gateway timeout", "upstream error", "upstream connect", "connection reset", "connection error", "temporarily unavailable",
		"try again later", "server_busy", "high demand", "at capacity", "unavailable", "resource_exhausted", "resourceexhausted", "upstream failure",
		"provider returned error", "stream disconnected", "timed out", "timeout", "api_error", "you can retry your request", "throttl",
		"stream interrupted", "ended without", "stream ended before", "connection refused", "connection lost", "connection closed", "network error",
		"socket hang up", "other side closed", "retry delay", "model_not_ready", "modelnotready", "modelstreamerror", "internalserver", "serviceunavailable",
	}
}

func overflowTexts() []string {
	return []string{
		"context_length_exceeded", "maximum context length", "context window", "context length", "prompt is too long",
		"exceed_context_size", "available context size", "exceeds the maximum number of tokens", "maximum prompt length",
		"reduce the length of the messages", "model token limit", "input is too long", "too many tokens", "token limit exceeded",
		"request_too_large", "input token count", "input length and", "exceeds the context", "context size", "context_window_exceeded",
		"prompt too long", "greater than the context", "range of input length", "model_context_window_exceeded", "too large for model",
	}
}

func hasAny(text string, parts []string) bool {
	text = strings.ToLower(text)
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}
