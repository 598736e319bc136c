// SPDX-License-Identifier: Apache-2.0
// The one place where Asio itself is compiled (ASIO_SEPARATE_COMPILATION).
#include <asio/impl/src.hpp>
