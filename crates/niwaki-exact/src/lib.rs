//! The enumeration oracle: exact bias, variance, direction and ESS of any policy loss.
